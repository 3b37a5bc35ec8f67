package habitat

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// PeerConfigMap returns the ConfigMap of the peer file, without a peer, and its observer
// schema. The schema does not observe the peer, which changes as Pods come and go.
func PeerConfigMap(namespace string) (resource, observerSchema map[string]any) {
	resource = map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": PeerFile, "namespace": namespace, "labels": map[string]any{Label: "true"}},
		"data":       map[string]any{PeerFile: ""},
	}
	observerSchema = map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": PeerFile, "namespace": nil, "labels": map[string]any{Label: nil}},
	}
	return resource, observerSchema
}

// Pod is a Pod of any Habitat, as far as it matters for the choice of a peer.
type Pod struct {
	Name, IP string
	// Running: the phase is Running.
	Running bool
	// Deleted: the Pod is being deleted.
	Deleted bool
	Started time.Time
}

func (p Pod) isCandidate() bool { return p.Running && !p.Deleted && p.IP != "" }

// ChoosePeer returns the address of the peer for the Pods of a namespace, or none if no
// Pod can be the peer. The current address stays while a Pod that can be the peer has it.
// Then the peer is the Pod that has run for longest. The order of the Pods does not
// matter.
func ChoosePeer(current string, pods []Pod) string {
	candidates := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return !p.isCandidate() })
	switch {
	case len(candidates) == 0:
		return ""
	case slices.ContainsFunc(candidates, func(p Pod) bool { return p.IP == current }):
		return current
	}
	return slices.MinFunc(candidates, func(a, b Pod) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.Name, b.Name), strings.Compare(a.IP, b.IP))
	}).IP
}
