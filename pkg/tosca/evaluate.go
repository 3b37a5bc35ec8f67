package tosca

import (
	"errors"
	"strconv"
	"strings"
)

const (
	maxSteps      = 100_000 // parts of texts that are put together
	maxReferences = 100     // get_property that leads to get_property
)

// asking is a property that is evaluated.
type asking struct {
	node     *node
	property *place
	// by is the property that refers to this one, or nil.
	by    *asking
	depth int
}

// asks reports whether the chain contains the property already.
func (a *asking) asks(property *place) bool {
	for ; a != nil; a = a.by {
		if a.property == property {
			return true
		}
	}
	return false
}

// evaluator evaluates functions within a budget of time and memory. A text that is
// doubled again and again needs memory, and one that is doubled to nothing needs time.
type evaluator struct {
	inputs map[string]*place
	nodes  map[string]*node

	steps int
	// made, decoded and resources are bytes: of the texts that concat makes, of the
	// texts that are decoded, and of the resources.
	made, decoded, resources int
	// exhausted: the budget is used up.
	exhausted bool
}

func (e *evaluator) step(at *place, steps int) error {
	if e.steps -= steps; e.steps < 0 {
		e.exhausted = true
		return at.errorf("the template takes more than %d steps: put less together", maxSteps)
	}
	return nil
}

// spend takes bytes from one of the three budgets.
func (e *evaluator) spend(at *place, budget *int, bytes int) error {
	if *budget -= bytes; *budget < 0 {
		e.exhausted = true
		return at.errorf("the template becomes more than %d bytes: make several Applications of it", MaxBytes)
	}
	return nil
}

// value returns the value of a property: a text, or the literal value.
func (e *evaluator) value(n *node, property *place) (*place, error) {
	a, at, err := e.follow(&asking{node: n, property: property}, property)
	if err != nil {
		return nil, err
	}
	name, argument := functionAt(at)
	if name != concat {
		return at, nil
	}
	var text strings.Builder
	if err := e.concat(&text, a, argument); err != nil {
		return nil, err
	}
	return property.with(text.String()), nil
}

// follow resolves get_input and get_property, until it reaches another value.
func (e *evaluator) follow(a *asking, at *place) (*asking, *place, error) {
	for {
		if err := e.step(at, 1); err != nil {
			return nil, nil, err
		}
		name, argument := functionAt(at)
		var err error
		switch name {
		case getInput:
			at, err = e.input(argument)
			return a, at, err
		case getProperty:
			a, at, err = e.property(a, argument)
		case "", concat:
			return a, at, nil
		default:
			err = at.errorf("the function %s is not supported: concat, get_input and get_property are", name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// input returns the value of an input.
func (e *evaluator) input(argument *place) (*place, error) {
	name := argument
	if argument.isList() && len(argument.Items) == 1 {
		name = argument.item(0)
	}
	if err := named(name); err != nil {
		return nil, err
	}
	value := e.inputs[name.text()]
	if value == nil {
		return nil, name.errorf("unknown input: topology_template.inputs has none of this name")
	}
	return value, nil
}

// property returns the value of a property, or the part of it that the further
// arguments select.
func (e *evaluator) property(a *asking, argument *place) (*asking, *place, error) {
	if !argument.isList() || len(argument.Items) < 2 {
		return nil, nil, argument.errorf("get_property takes a list: SELF or a node template, a property, and perhaps an index or a key")
	}
	n, at, err := e.propertyOf(a.node, argument.item(0), argument.item(1))
	switch {
	case err != nil:
		return nil, nil, err
	case a.asks(at):
		return nil, nil, argument.errorf("the property refers to itself")
	case a.depth >= maxReferences:
		return nil, nil, argument.errorf("get_property leads to get_property more than %d times", maxReferences)
	}
	a = &asking{node: n, property: at, by: a, depth: a.depth + 1}
	for i := 2; i < len(argument.Items); i++ {
		if a, at, err = e.follow(a, at); err != nil {
			return nil, nil, err
		}
		if err := e.step(at, len(at.Fields)/100); err != nil { // choose may look at all of them
			return nil, nil, err
		}
		if at, err = choose(at, argument.item(i)); err != nil {
			return nil, nil, err
		}
	}
	return a, at, nil
}

// propertyOf returns the property of that name with its node template.
func (e *evaluator) propertyOf(self *node, owner, name *place) (*node, *place, error) {
	if err := errors.Join(named(owner), named(name)); err != nil {
		return nil, nil, err
	}
	n := self
	if owner.text() != "SELF" {
		n = e.nodes[owner.text()]
	}
	if n == nil {
		return nil, nil, owner.errorf("unknown node template: write SELF, or the name of one")
	}
	at := n.properties[name.text()]
	if at == nil {
		return nil, nil, name.errorf("unknown property: the node template has none of this name")
	}
	return n, at, nil
}

// named refuses a name that is no text: YAML reads n as a boolean.
func named(p *place) error {
	if _, ok := p.Value.(string); !ok {
		return p.errorf("%s is no name: write a text, in quotes if YAML takes it for something else", kindOf(p.Value))
	}
	return nil
}

// choose returns an item of a list, or a field of a mapping.
func choose(at, wanted *place) (*place, error) {
	key := wanted.text()
	if number, ok := wanted.Value.(int64); ok {
		key = strconv.FormatInt(number, 10)
	}
	switch {
	case at.isList():
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(at.Items) {
			return nil, wanted.errorf("the property has a list of %d items there: write an index, 0 is the first", len(at.Items))
		}
		return at.item(i), nil
	case at.isMapping():
		if field := at.field(key); field != nil {
			return field, nil
		}
		return nil, wanted.errorf("the property has no such key")
	}
	return nil, wanted.errorf("the property has %s there, which has neither items nor keys", kindOf(at.Value))
}

// concat writes the parts one after the other.
func (e *evaluator) concat(to *strings.Builder, a *asking, argument *place) error {
	if !argument.isList() {
		return e.append(to, a, argument)
	}
	if len(argument.Items) == 0 {
		return argument.errorf("concat takes at least one text")
	}
	for i := range argument.Items {
		if err := e.append(to, a, argument.item(i)); err != nil {
			return err
		}
	}
	return nil
}

// append writes one part of a concat. An input is written after a blank.
func (e *evaluator) append(to *strings.Builder, a *asking, part *place) error {
	if name, argument := functionAt(part); name == getInput {
		if err := e.step(part, 1); err != nil {
			return err
		}
		value, err := e.input(argument)
		if err != nil {
			return err
		}
		return e.write(to, part, " "+textOf(value.Tree))
	}
	a, at, err := e.follow(a, part)
	if err != nil {
		return err
	}
	if name, argument := functionAt(at); name == concat {
		return e.concat(to, a, argument)
	}
	text, ok := at.Value.(string)
	if !ok {
		return part.errorf("%s, and concat takes texts: put it in quotes", kindOf(at.Value))
	}
	return e.write(to, part, text)
}

func (e *evaluator) write(to *strings.Builder, at *place, text string) error {
	to.WriteString(text)
	return e.spend(at, &e.made, len(text))
}
