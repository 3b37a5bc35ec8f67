package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestOutputAppearsAfterItsCommandTookItsTime(t *testing.T) {
	lines, end := script([]frame{
		{remark: "why", command: "a", output: "one\ntwo\n", took: time.Minute},
		{command: "b"},
	})
	var texts []string
	for i, l := range lines {
		texts = append(texts, l.text)
		if i > 0 && l.at < lines[i-1].at {
			t.Errorf("%q appears at %s, before %q", l.text, l.at, lines[i-1].text)
		}
	}
	check.Equal(t, "lines", []string{"# why", "$ a", "one", "two", "$ b"}, texts)
	if pause := lines[2].at - lines[1].at; pause < time.Minute || pause > time.Minute+time.Second {
		t.Errorf("the output appears %s after the command began, which took a minute", pause)
	}
	if last := lines[len(lines)-1]; end <= last.at+last.typing {
		t.Errorf("the scene ends at %s, before its last command is typed", end)
	}
}

func TestADrawingIsWellFormedAndHasEachText(t *testing.T) {
	hostile := `<script>alert("1")</script> & ]]> 'x'`
	drawing := draw([]frame{{command: "cat " + hostile, output: hostile}}, themes["dark"])
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		check.Must(t, err)
		if begin, ok := token.(xml.StartElement); ok && begin.Name.Local != "text" && begin.Name.Local != "svg" && begin.Name.Local != "style" && begin.Name.Local != "rect" {
			t.Errorf("the drawing has an element %s", begin.Name.Local)
		}
		if text, ok := token.(xml.CharData); ok && strings.Contains(string(text), "script>") {
			texts = append(texts, string(text))
		}
	}
	check.Equal(t, "texts", []string{"$ cat " + hostile, hostile}, texts)
}
