package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// said matches references to threats and invariants in a comment: "Threat A13 of the
// security specification: TEXT", "Threats A2 and A3, and invariant I1: TEXT".
var (
	said   = regexp.MustCompile(`(?i)\b(?:threats?|invariants?) [AI]\d[^:.]*[:.]\s*([^.]*)`)
	number = regexp.MustCompile(`\b[AI]\d+\b`)
)

// numbersOf returns the numbers that the comment of a test names, and the sentence
// after them.
func numbersOf(comment string) (numbers []string, proves string) {
	found := said.FindStringSubmatch(strings.Join(strings.Fields(comment), " "))
	if found == nil {
		return nil, ""
	}
	return number.FindAllString(strings.TrimSuffix(found[0], found[1]), -1), found[1]
}

// writeProofs writes the page that leads from each number to its tests.
func writeProofs(packages []pkg, out io.Writer) {
	rows := map[string][]string{}
	for _, p := range packages {
		for _, t := range p.tests {
			for _, n := range t.numbers {
				rows[n] = append(rows[n], fmt.Sprintf("| %s | %s | `%s` | `%s` | %s |\n", n, t.proves, t.name, p.path, t.tiers()))
			}
		}
	}
	fmt.Fprint(out, `# Threats and invariants, and the tests that prove them

This page shows the tests that prove each threat and invariant. A threat is a row of the security specification (A1, A2 ...). An invariant
is a rule of the reliability specification (I1, I2 ...) that holds after every fault. The comment above each test names them; `+"`make proofs`"+`
makes this page from those comments.

| number | what it is | test | package | tier |
|---|---|---|---|---|
`)
	for _, n := range slices.SortedFunc(maps.Keys(rows), byNumber) {
		fmt.Fprint(out, strings.Join(rows[n], ""))
	}
}

func byNumber(a, b string) int {
	value := func(n string) int {
		v, _ := strconv.Atoi(n[1:]) // the expression has matched digits
		return v
	}
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(value(a), value(b)))
}
