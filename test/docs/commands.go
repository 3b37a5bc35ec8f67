package docs

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Command is a command that a page asks the reader to run.
type Command struct {
	Page string
	Line int
	// Words are the words as a shell splits them, with pipes.
	Words []string
}

// String returns the words with a blank between them.
func (c Command) String() string { return strings.Join(c.Words, " ") }

// Commands returns the commands of a page.
func (p *Page) Commands() ([]Command, error) {
	var commands []Command
	for _, section := range p.Sections {
		for _, part := range section.Parts {
			if part.Block == nil || !part.Block.hasCommands() {
				continue
			}
			found, err := p.commandsOf(part.Block)
			if err != nil {
				return nil, err
			}
			commands = append(commands, found...)
		}
	}
	return commands, nil
}

func (b *Block) hasCommands() bool {
	return !b.Fenced || b.Is("sh") || b.Is("bash") || b.Is("shell") || b.Is("console")
}

func (p *Page) commandsOf(block *Block) ([]Command, error) {
	var commands []Command
	lines := strings.Split(block.Text, "\n")
	prompts := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "$ ") })
	for i := 0; i < len(lines); i++ {
		line, isCommand := strings.CutPrefix(lines[i], "$ ")
		if prompts && !isCommand || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		command := Command{Page: p.Path, Line: block.Line + i}
		for goesOn(line) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
		}
		words, err := Words(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", p.Path, command.Line, err)
		}
		command.Words = words
		commands = append(commands, command)
	}
	return commands, nil
}

func goesOn(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|")
}

// Words splits a line as a shell does, with the features that the documentation uses:
// quotes of both kinds, backslashes, and comments at the end.
func Words(line string) ([]string, error) {
	var words splitting
	characters := []rune(line)
	for i := 0; i < len(characters); i++ {
		switch c := characters[i]; {
		case c == '\'' || c == '"':
			text, length := quoted(characters[i+1:], c)
			if length < 0 {
				return nil, fmt.Errorf("%s: a quote is left open", line)
			}
			words.add(text)
			i += length
		case c == '\\' && i+1 < len(characters):
			i++
			words.add(string(characters[i]))
		case c == '#' && !words.within:
			return words.done, nil
		case unicode.IsSpace(c):
			words.end()
		default:
			words.add(string(c))
		}
	}
	words.end()
	return words.done, nil
}

// quoted returns the text in quotes, and its length with the closing quote: negative
// without one.
func quoted(rest []rune, quote rune) (text string, length int) {
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			return b.String(), i + 1
		case c == '\\' && quote == '"' && i+1 < len(rest):
			i++
			b.WriteRune(rest[i])
		default:
			b.WriteRune(c)
		}
	}
	return "", -1
}

// splitting is the state of splitting a line. A word in quotes may be empty.
type splitting struct {
	done   []string
	word   strings.Builder
	within bool
}

func (s *splitting) add(text string) {
	s.word.WriteString(text)
	s.within = true
}

func (s *splitting) end() {
	if s.within {
		s.done = append(s.done, s.word.String())
	}
	s.word.Reset()
	s.within = false
}
