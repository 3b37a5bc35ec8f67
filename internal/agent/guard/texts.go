package guard

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/krake-observer/krake-observer/internal/forecast"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// An API server cuts texts if all of them together have more than 4,096 characters. The last one has the way out,
// so they stay below that.
const (
	maxTexts = 10
	maxText  = 300 // bytes
)

// textsOf returns what a user reads about differences that the agent will revert: one text for each, and the way out.
func textsOf(app *application.Application, id manifest.ID, undone schema.Differences, after map[string]any) []string {
	if len(undone) == 0 {
		return nil
	}
	var texts []string
	for _, d := range undone[:min(len(undone), maxTexts)] {
		texts = append(texts, fit(forecast.TextOf(app, id, d, after)))
	}
	if more := len(undone) - maxTexts; more > 0 {
		texts = append(texts, fmt.Sprintf("The agent will also revert %d more differences.", more))
	}
	wayOut := printable(forecast.WayOut(app, id, undone))
	if len(texts) == 1 {
		return []string{texts[0] + " " + wayOut}
	}
	return append(texts, wayOut)
}

// fit returns a text that is not too long.
func fit(text string) string {
	return strings.ToValidUTF8(application.Cut(printable(text), maxText-len("...")), "") // it cuts within characters
}

// printable returns a text that the API server passes on. It drops a warning with control characters, which the
// names of fields may have.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
