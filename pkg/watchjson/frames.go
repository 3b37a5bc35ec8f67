package watchjson

import (
	"errors"
	"io"
)

const (
	// leastBuffer is the buffer that is kept between events, mostFrame the largest event.
	leastBuffer = 32 << 10
	mostFrame   = 64 << 20
)

// errFrame is the error of bytes that are no JSON object.
var errFrame = errors.New("the event is no JSON object, or too large")

// frames cuts a stream of bytes into JSON objects, by counting braces outside of strings.
type frames struct {
	from   io.Reader
	buffer []byte
	// used is the length of the object that next returned last.
	used int
}

// next returns the next object, which is valid until next is called again.
func (f *frames) next() ([]byte, error) {
	f.drop()
	var c cutter
	for {
		if end, err := c.cut(f.buffer); end > 0 || err != nil {
			f.used = end
			return f.buffer[:end], err
		}
		if len(f.buffer) >= mostFrame {
			return nil, errFrame
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// drop removes the object that next returned, and the memory that only it needed.
func (f *frames) drop() {
	unread := f.buffer[f.used:]
	if cap(f.buffer) > 2*leastBuffer && len(unread) < leastBuffer {
		f.buffer = make([]byte, 0, leastBuffer)
	}
	f.buffer, f.used = append(f.buffer[:0], unread...), 0
}

func (f *frames) fill() error {
	if len(f.buffer) == cap(f.buffer) {
		grown := make([]byte, len(f.buffer), max(leastBuffer, 2*cap(f.buffer)))
		copy(grown, f.buffer)
		f.buffer = grown
	}
	n, err := f.from.Read(f.buffer[len(f.buffer):cap(f.buffer)])
	f.buffer = f.buffer[:len(f.buffer)+n]
	if n > 0 {
		return nil // the next Read returns the error again
	}
	return err
}

// cutter finds the end of an object that arrives in pieces.
type cutter struct {
	at, depth       int
	quoted, escaped bool
}

// cut returns the end of the first object, and 0 before the text contains it.
func (c *cutter) cut(text []byte) (end int, err error) {
	for ; c.at < len(text); c.at++ {
		b := text[c.at]
		switch {
		case c.quoted:
			c.quote(b)
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			c.depth++
		case b == '}' || b == ']':
			c.depth--
		}
		if c.depth <= 0 && b > ' ' {
			if b != '}' || c.depth < 0 {
				return 0, errFrame
			}
			return c.at + 1, nil
		}
	}
	return 0, nil
}

func (c *cutter) quote(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case b == '"':
		c.quoted = false
	}
}
