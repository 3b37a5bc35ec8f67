package watchjson

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/json" // reads integers as such
)

// Decoder reads JSON of one watch. Names of fields and short values are stored once for all of its
// texts; no result shares memory with a text, except Field.Text. It is not safe for concurrent use.
type Decoder struct{ known interned }

// NewDecoder returns a Decoder that has read nothing.
func NewDecoder() *Decoder {
	return &Decoder{interned{names: map[string]string{}, values: map[string]string{}}}
}

// Field is a field of an object. Text is its value, as a part of the object's text.
type Field struct {
	Name string
	Text []byte
}

// Fields returns the fields of an object in the order of the text. If a name occurs twice, the last
// one counts.
func (d *Decoder) Fields(object []byte) ([]Field, error) {
	return readAll(&d.known, object, (*parser).topFields)
}

// Value decodes a value.
func (d *Decoder) Value(text []byte) (any, error) { return readAll(&d.known, text, (*parser).value) }

// Metadata decodes the metadata of an object without managedFields, which are most of it.
func (d *Decoder) Metadata(text []byte) (any, error) {
	return readAll(&d.known, text, (*parser).metadata)
}

// Object decodes a whole object.
func (d *Decoder) Object(text []byte) (map[string]any, error) {
	if object, err := readAll(&d.known, text, (*parser).fields); err == nil {
		return object, nil
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	return object, nil
}

var decoders = sync.Pool{New: func() any { return NewDecoder() }}

// Object decodes a whole object, of no particular watch. It is safe for concurrent use.
func Object(text []byte) (map[string]any, error) {
	d := decoders.Get().(*Decoder)
	defer decoders.Put(d)
	return d.Object(text)
}

func (p *parser) topFields() ([]Field, error) {
	const usual = 8
	fields := make([]Field, 0, usual)
	err := p.object(func(name string) error {
		text, err := p.skip()
		fields = append(fields, Field{name, text})
		return err
	})
	return fields, err
}

func (p *parser) metadata() (any, error) {
	if p.peek() != '{' {
		return p.value()
	}
	fields := map[string]any{}
	err := p.object(func(name string) error {
		if name == "managedFields" {
			_, err := p.skip()
			return err
		}
		value, err := p.value()
		fields[name] = value
		return err
	})
	return fields, err
}
