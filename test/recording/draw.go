package main

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// theme has the colours of a drawing.
type theme struct{ background, text, prompt, remark string }

var themes = map[string]theme{
	"light": {background: "#ffffff", text: "#1f2328", prompt: "#0969da", remark: "#59636e"},
	"dark":  {background: "#0d1117", text: "#e6edf3", prompt: "#58a6ff", remark: "#9198a1"},
}

const (
	// The size of a character, and of the margin around the text, in pixels.
	characterWidth, lineHeight, margin = 8.0, 19.0, 16.0

	// perCharacter is the time to type a character; afterOutput is the time to read a line
	// of output, and atTheEnd the time before the recording repeats.
	perCharacter, afterOutput, atTheEnd = 35 * time.Millisecond, 250 * time.Millisecond, 8 * time.Second
)

// line is a line of the terminal with the time at which it appears. A typed line
// appears from left to right.
type line struct {
	text, class string
	at, typing  time.Duration
}

// script assigns times to the frames, and returns the time when the last line has been
// read.
func script(frames []frame) (lines []line, end time.Duration) {
	now := time.Second
	for i, f := range frames {
		if f.remark != "" {
			if i > 0 {
				lines = append(lines, line{at: now})
			}
			lines = append(lines, line{text: "# " + f.remark, class: "remark", at: now})
			now += time.Second
		}
		typed := "$ " + f.command
		typing := time.Duration(utf8.RuneCountInString(typed)) * perCharacter
		lines = append(lines, line{text: typed, class: "command", at: now, typing: typing})
		now += typing + f.took
		output := strings.Split(strings.TrimRight(f.output, "\n"), "\n")
		for _, text := range output {
			if text != "" || len(output) > 1 {
				lines = append(lines, line{text: text, class: "output", at: now})
			}
		}
		now += time.Duration(1+len(output)) * afterOutput
	}
	return lines, now
}

// draw returns the frames as an animated SVG, which repeats. It has no script. If the
// reader wants no motion, all of it is visible from the start.
func draw(frames []frame, colours theme) string {
	lines, end := script(frames)
	total := end + atTheEnd
	columns := 0
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(l.text))
	}
	width, height := float64(columns)*characterWidth+2*margin, float64(len(lines))*lineHeight+2*margin
	percent := func(at time.Duration) float64 { return 100 * at.Seconds() / total.Seconds() }

	var style, text strings.Builder
	for i, l := range lines {
		y := margin + float64(i+1)*lineHeight - 5
		fmt.Fprintf(&text, "<text class=\"%s\" id=\"l%d\" x=\"%g\" y=\"%g\" xml:space=\"preserve\">%s</text>\n", l.class, i, margin, y, html.EscapeString(l.text))
		if l.typing > 0 {
			fmt.Fprintf(&style, "#l%d{animation:k%d %.2fs steps(%d) infinite}@keyframes k%d{0%%,%.3f%%{clip-path:inset(0 100%% 0 0)}%.3f%%,100%%{clip-path:inset(0 0 0 0)}}\n",
				i, i, total.Seconds(), utf8.RuneCountInString(l.text), i, percent(l.at), percent(l.at+l.typing))
			continue
		}
		fmt.Fprintf(&style, "#l%d{animation:k%d %.2fs step-end infinite}@keyframes k%d{0%%{opacity:0}%.3f%%{opacity:1}}\n",
			i, i, total.Seconds(), i, percent(l.at))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="A change to a Deployment is reverted, and kubectl krake history names who made it">
<style>
text{font:13.3px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:%s}
.command{fill:%s}.remark{fill:%s}
@media (prefers-reduced-motion:no-preference){
%s}
</style>
<rect width="100%%" height="100%%" rx="8" fill="%s" stroke="%s" stroke-opacity="0.3"/>
%s</svg>
`, width, height, width, height, colours.text, colours.prompt, colours.remark, style.String(), colours.background, colours.remark, text.String())
}
