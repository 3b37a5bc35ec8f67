package schema

// WithoutServerOwned gives the schema without the fields that a server sets and
// no client may: the server's own metadata, and the status. To observe them in a
// default schema would mean to revert what only the server can write. It tells
// which were observed.
func (s Schema) WithoutServerOwned() (Schema, []string) {
	var left []string
	for _, path := range serverOwned() {
		if s.Observes(path...) {
			left = append(left, fieldPath(path).String())
			s = s.Unobserve(path...)
		}
	}
	return s, left
}

func serverOwned() [][]string {
	return [][]string{
		{"metadata", "creationTimestamp"},
		{"metadata", "deletionGracePeriodSeconds"},
		{"metadata", "deletionTimestamp"},
		{"metadata", "generation"},
		{"metadata", "managedFields"},
		{"metadata", "resourceVersion"},
		{"metadata", "selfLink"},
		{"metadata", "uid"},
		{"status"},
	}
}

// Observes tells if the field at the path, which leads through no list, is
// observed: by itself, in part, or as a part of a field that is observed as a whole.
func (s Schema) Observes(path ...string) bool {
	n := node(s.root)
	for _, name := range path {
		if _, whole := n.(leaf); whole {
			return true
		}
		parent, ok := n.(object)
		if !ok {
			return false
		}
		at, found := parent.find(name)
		if !found {
			return false
		}
		n = parent.fields[at].node
	}
	return true
}

func fieldPath(names []string) Path {
	path := make(Path, 0, len(names))
	for _, name := range names {
		path = append(path, Step{Field: name, Index: notAnIndex})
	}
	return path
}
