package observer

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/watchjson"
)

// decoder makes records of the objects of one watch. It decodes only the required parts of an
// object: metadata without managedFields, the fields for the summary, and the observed fields. It
// decodes only an object that differs as a whole.
type decoder struct {
	json     *watchjson.Decoder
	registry *registry
	resource gvr.GroupVersionResource
}

func newDecoder(v *registry, resource gvr.GroupVersionResource) *decoder {
	return &decoder{watchjson.NewDecoder(), v, resource}
}

func (d *decoder) record(text []byte) (*record, error) {
	whole := sync.OnceValue(func() Whole { return bytes.Clone(text) })
	in, err := d.part(text)
	if err != nil {
		live, err := d.json.Object(text)
		if err != nil {
			return nil, err
		}
		in = d.registry.inspection(d.resource, live)
	}
	return d.registry.inspector.inspect(in, whole), nil
}

// part decodes the required parts of an object. If it returns an error, the whole object has to be
// decoded.
func (d *decoder) part(text []byte) (in inspection, err error) {
	fields, err := d.json.Fields(text)
	if err != nil {
		return in, err
	}
	live, err := d.common(fields)
	if err != nil {
		return in, err
	}
	in = d.registry.inspection(d.resource, live)
	if err := d.addObserved(in, fields); err != nil {
		return in, err
	}
	in.fingerprint = d.fingerprint(in, fields)
	return in, nil
}

// common decodes the parts that every object needs.
func (d *decoder) common(fields []watchjson.Field) (map[string]any, error) {
	live := make(map[string]any, len(fields))
	for _, field := range fields {
		decode := d.json.Value
		switch {
		case field.Name == "metadata":
			decode = d.json.Metadata
		case field.Name != "apiVersion" && field.Name != "kind" && !d.summarises(field.Name):
			continue
		}
		value, err := decode(field.Text)
		if err != nil {
			return nil, err
		}
		live[field.Name] = value
	}
	return live, nil
}

func (d *decoder) summarises(field string) bool {
	of := d.registry.options.Summarised
	return of == nil || slices.Contains(of, field)
}

var errManagedFields = errors.New("managedFields are observed")

// addObserved decodes the other observed fields of an object.
func (d *decoder) addObserved(in inspection, fields []watchjson.Field) error {
	if in.observes("metadata", "managedFields") {
		return errManagedFields
	}
	for _, field := range fields {
		if _, known := in.live.Object[field.Name]; known || !in.observes(field.Name) {
			continue
		}
		value, err := d.last(fields, field.Name)
		if err != nil {
			return err
		}
		in.live.Object[field.Name] = value
	}
	return nil
}

// last decodes the field that counts if several have the same name: the last one.
func (d *decoder) last(fields []watchjson.Field, name string) (value any, err error) {
	for _, field := range fields {
		if field.Name != name {
			continue
		}
		if value, err = d.json.Value(field.Text); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// fingerprintSeed is a secret of this process, so that no user can make two texts with the same
// fingerprint.
var fingerprintSeed = maphash.MakeSeed()

// fingerprint digests the observed fields. Of metadata it digests only the observed parts, because
// every write changes metadata.
func (d *decoder) fingerprint(in inspection, fields []watchjson.Field) fingerprint {
	var seen maphash.Hash
	seen.SetSeed(fingerprintSeed)
	add := func(field watchjson.Field) {
		_, _ = seen.WriteString(field.Name) // a maphash returns no errors
		_ = seen.WriteByte(0)               // neither a name nor JSON has one
		_, _ = seen.Write(field.Text)
		_ = seen.WriteByte(0)
	}
	for _, field := range fields {
		if !in.observes(field.Name) {
			continue
		}
		if field.Name != "metadata" {
			add(field)
			continue
		}
		metadata, err := d.json.Fields(field.Text)
		if err != nil {
			return 0
		}
		for _, field := range metadata {
			if in.observes("metadata", field.Name) {
				add(field)
			}
		}
	}
	return max(1, fingerprint(seen.Sum64()))
}
