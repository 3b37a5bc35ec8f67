package ignored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/itchyny/gojq"
)

// The limits of an expression on one object. The first is that of Argo CD.
const (
	maxTime   = time.Second
	maxFields = 10_000
)

var (
	errTooSlow = fmt.Errorf("its evaluation takes longer than %s", maxTime)
	errTooMany = fmt.Errorf("it selects more than %d fields", maxFields)
	errFails   = errors.New("it reads fields that the manifest leaves out, and fails without them")
	errSlice   = errors.New("it selects a slice of a list: select the elements by [] or by their indices")
)

// expression is an expression of jq that selects fields.
type expression struct {
	// place is where the source has the expression.
	place, text string
	code        *gojq.Code
}

// in returns what the expression selects in an object: nothing if it fails, as Argo CD ignores nothing
// then. The error is errFails, because the message of the library may have values of the object.
func (x expression) in(ctx context.Context, object map[string]any) ([]steps, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var input any // with numbers of the types that gojq knows
	if err := json.Unmarshal(text, &input); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	results := x.code.RunWithContext(ctx, input)
	var selected []steps
	for {
		result, more := results.Next()
		path, isPath := result.([]any)
		switch {
		case ctx.Err() != nil:
			return nil, errTooSlow
		case !more:
			return selected, nil
		case !isPath:
			return nil, errFails
		case len(selected) == maxFields:
			return nil, errTooMany
		}
		s, err := stepsOf(path)
		if err != nil {
			return nil, err
		}
		selected = append(selected, s)
	}
}

// stepsOf reads a path in the form of jq.
func stepsOf(path []any) (steps, error) {
	s := slices.Clone(path)
	for i, step := range s {
		if _, isName := step.(string); isName {
			continue
		}
		index, ok := gojq.ToInt(step)
		if !ok {
			return nil, errSlice
		}
		s[i] = index
	}
	return s, nil
}
