package ui

import (
	"net/url"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/lens"
)

// look is a look of a line, with its sign and class.
type look struct {
	Name        lens.Look
	Sign, Class string
}

var (
	unobserved = look{lens.Unobserved, "·", "unobserved"}
	looks      = []look{{lens.InOrder, "✓", "ok"}, {lens.Drifting, "≠", "drifting"}, {lens.Pinned, "⚲", "pinned"}, unobserved, {lens.Private, "⊘", "private"}}
)

func lookOf(line lens.Line) look {
	if line.Look == "" {
		return look{Class: "part"}
	}
	if at := slices.IndexFunc(looks, func(l look) bool { return l.Name == line.Look }); at >= 0 {
		return looks[at]
	}
	return unobserved
}

// lensContent is the lines of an object. If the query is empty, their fields cannot be chosen.
type lensContent struct {
	Query string
	// Blocks are lines that the browser lays out together. It skips blocks that are not on the screen.
	Blocks [][]lensLine
}

type lensLine struct {
	lens.Line
	look

	// Who has written the value, empty if that is said for a line before.
	Who   string
	Since time.Time
}

const blockLines = 100

func lensOf(lines []lens.Line, query url.Values) lensContent {
	content := lensContent{Query: query.Encode()}
	var former blame.Culprit
	for block := range slices.Chunk(lines, blockLines) {
		shown := make([]lensLine, 0, len(block))
		for _, line := range block {
			l := lensLine{Line: line, look: lookOf(line)}
			isField := line.Toggle != nil && line.Toggle.Length == 0
			switch {
			case line.Culprit.Known() && line.Culprit != former: // said once for the lines that follow each other
				l.Who, l.Since = line.Culprit.Name(), line.Culprit.Time
			case isField && !line.Culprit.Known() && former.Known():
				l.Who = line.Culprit.Name()
			}
			if line.Look != "" {
				former = line.Culprit
			}
			shown = append(shown, l)
		}
		content.Blocks = append(content.Blocks, shown)
	}
	return content
}
