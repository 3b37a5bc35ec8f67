package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/krake-observer/krake-observer/internal/webhook/limit"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// writer is the account that writes the objects of an Application on this cluster.
type writer struct{ namespace, name string }

// writerOf returns the service account of an Application, or without one that of the agent.
func writerOf(namespace, account string) writer {
	if account == "" {
		return writer{application.AgentsNamespace, application.LocalCluster}
	}
	return writer{namespace, account}
}

func (w writer) String() string {
	if w.namespace == application.AgentsNamespace {
		return "the agent"
	}
	return "service account " + w.name
}

// user returns the account as the API server authenticates it.
func (w writer) user() authenticationv1.UserInfo {
	const prefix = "system:serviceaccount"
	return authenticationv1.UserInfo{
		Username: prefix + ":" + w.namespace + ":" + w.name,
		Groups:   []string{prefix + "s", prefix + "s:" + w.namespace, "system:authenticated"},
	}
}

// outlook is what is known about the creation of the objects before it.
type outlook struct {
	writer writer
	// denied are the rights that the writer does not have.
	denied []mutate.Need
	// adopts: objects may exist already.
	adopts bool
	// known reports that the objects are created on this cluster, and that the rights are known.
	known bool
}

// lookAhead finds out which kinds of objects the writer may not create. On another cluster the
// rights are unknown here, and in other modes than enforce nothing is created.
func (h *handler) lookAhead(ctx context.Context, cm *corev1.ConfigMap, by writer, p placed) outlook {
	mode := application.Mode(cm.Annotations[application.ModeAnnotation])
	if application.ClusterOf(cm) != application.LocalCluster || mode == application.Observe || mode == application.Suspend {
		return outlook{}
	}
	denied, err := h.authority.denied(ctx, by.user(), p.creations())
	if err != nil {
		h.logger.V(1).Info("the rights of the writer are unknown", "error", err.Error())
		return outlook{}
	}
	return outlook{by, denied, cm.Annotations[application.AdoptAnnotation] == "true", true}
}

// foretell returns warnings about kinds that the writer may not create, and about mistakes that the
// API server finds in new objects. The Application is admitted. The right may be granted later, and
// another API server may accept the object.
func (h *handler) foretell(ctx context.Context, ahead outlook, p placed, prepared *mutate.Prepared) []string {
	if !ahead.known {
		return nil
	}
	var warnings []string
	lacking := sets.Set[mutate.Access]{}
	for _, need := range ahead.denied {
		lacking.Insert(need.Access)
		warnings = append(warnings, fmt.Sprintf("%s: %s may not %s: have an administrator grant it", need.Path, ahead.writer, need.Access))
	}
	if h.trial != nil && !ahead.adopts {
		if fresh := p.candidates(prepared.Resources, lacking); len(fresh) > 0 {
			limit.GiveBack(ctx)
			started := h.now()
			warnings = append(warnings, h.trial.warnings(ctx, fresh)...)
			durations.WithLabelValues("dry-run").Observe(h.now().Sub(started).Seconds())
		}
	}
	return mutate.RelocateTexts(warnings, prepared.Spec)
}

// candidates returns the objects of known kinds that no agent has yet, and that the writer may create.
func (p placed) candidates(resources []map[string]any, lacking sets.Set[mutate.Access]) []candidate {
	var candidates []candidate
	for i, ref := range p.wanted {
		if i < len(resources) && !p.unknown[i] && !lacking.Has(creation(ref)) && len(mutate.Left(p.held, p.wanted[i:i+1])) > 0 {
			candidates = append(candidates, candidate{ref, i, resources[i]})
		}
	}
	return candidates
}

// creations returns the right to create each kind, with the place of the first object of it.
func (p placed) creations() []mutate.Need {
	var needs []mutate.Need
	known := sets.Set[mutate.Access]{}
	for i, ref := range p.wanted {
		access := creation(ref)
		if p.unknown[i] || known.Has(access) {
			continue
		}
		known.Insert(access)
		needs = append(needs, mutate.Need{Access: access, Path: mutate.ResourcePath(i)})
	}
	return needs
}

func creation(ref manifest.Ref) mutate.Access {
	return mutate.Access{Verb: "create", Group: ref.Resource.Group, Resource: ref.Resource.Resource, Namespace: ref.Namespace}
}
