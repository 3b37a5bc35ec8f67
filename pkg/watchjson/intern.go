package watchjson

// interned are strings that occur again and again, stored once: names of fields and short
// values. Their number is bounded, because any user may write new ones.
type interned struct{ names, values map[string]string }

const (
	// mostInterned bounds the names and the values, longestName and longestValue their bytes.
	mostInterned = 2048
	longestName  = 64
	longestValue = 24
)

func (i *interned) name(text []byte) string { return intern(i.names, text, longestName) }

func (i *interned) value(text []byte) string { return intern(i.values, text, longestValue) }

func intern(known map[string]string, text []byte, longest int) string {
	if len(text) > longest {
		return string(text)
	}
	if word, ok := known[string(text)]; ok {
		return word
	}
	word := string(text)
	if len(known) < mostInterned {
		known[word] = word
	}
	return word
}
