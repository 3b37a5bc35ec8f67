package lens

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Visible escapes, as in JSON, characters that a terminal would execute instead of show. The
// names of managers and messages come from other clients.
func Visible(text string) string {
	if !strings.ContainsFunc(text, IsInvisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !IsInvisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}

// IsInvisible reports whether it is a control character, or turns the direction of a text.
func IsInvisible(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
