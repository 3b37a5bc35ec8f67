package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rule is a forbidden construction, with an alternative.
type rule struct {
	pattern *regexp.Regexp
	advice  string
	kinds   []kind // empty: all
}

func word(pattern, advice string) rule {
	return rule{pattern: regexp.MustCompile(`(?i)\b(` + pattern + `)\b`), advice: advice}
}

var rules = []rule{
	word(`whoever|whomever`, `name the person: "users who", "the client that"`),
	word(`somebody|someone`, `name who: "another client", "a user"`),
	word(`nobody|no one`, `name who does not: "no client"`),
	word(`anybody|anyone`, `name who: "any client"`),
	word(`whom`, `begin with the person: "the user that it names"`),
	word(`hardly|scarcely`, `give the amount: "rarely", "at most"`),
	word(`by itself`, `"automatically", or "alone"`),
	word(`what there is to`, `name it: "the remaining work"`),
	word(`as it is`, `"unchanged"`),
	word(`is said|are told|is told`, `name who reports it: "the condition reports"`),
	word(`failed to`, `say what was tried: "create web: ..."`),
	{pattern: regexp.MustCompile(`^\w+ (gives|tells)\b`), advice: `"returns", "reports whether"`, kinds: []kind{comment}},
}

// maxWords is the maximum length of a sentence.
const maxWords = 25

// sentenceEnd matches the end of a sentence: before a space or a line break.
var sentenceEnd = regexp.MustCompile(`[.!?:;]["')\]]* +|\n`)

// finding is a violation of a rule.
type finding struct {
	passage
	text, advice string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %q: %s", f.file, f.line, f.kind, f.text, f.advice)
}

// exception is a text that is right in one file, in spite of the rules.
type exception struct {
	File   string `json:"file"`
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// check returns the violations of the rules, and the unused exceptions.
func check(passages []passage, excepted []exception) (found []finding, unused []exception) {
	used := make([]bool, len(excepted))
	for _, p := range passages {
		for _, f := range findings(p) {
			if i := exceptionOf(f, excepted); i >= 0 {
				used[i] = true
				continue
			}
			found = append(found, f)
		}
	}
	for i, e := range excepted {
		if !used[i] {
			unused = append(unused, e)
		}
	}
	return found, unused
}

// exceptionOf returns the index of the exception for a finding, or -1.
func exceptionOf(f finding, excepted []exception) int {
	for i, e := range excepted {
		if e.File == f.file && strings.Contains(f.passage.text, e.Text) && strings.Contains(e.Text, f.text) {
			return i
		}
	}
	return -1
}

func findings(p passage) []finding {
	var found []finding
	for _, r := range rules {
		if !r.isFor(p.kind) {
			continue
		}
		for _, text := range r.pattern.FindAllString(p.text, -1) {
			found = append(found, finding{passage: p, text: text, advice: "write " + r.advice})
		}
	}
	for _, sentence := range sentenceEnd.Split(p.text, -1) {
		if n := len(strings.Fields(sentence)); n > maxWords && p.kind != literal {
			found = append(found, finding{passage: p, text: beginning(sentence), advice: fmt.Sprintf("%d words: at most %d a sentence", n, maxWords)})
		}
	}
	return found
}

func (r rule) isFor(k kind) bool {
	return len(r.kinds) == 0 || slices.Contains(r.kinds, k)
}

// beginning returns the first words of a sentence, so that it can be found.
func beginning(sentence string) string {
	words := strings.Fields(sentence)
	return strings.Join(words[:min(6, len(words))], " ")
}
