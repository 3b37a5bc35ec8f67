package discovery

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// definedTypes are the types of a group and version, as they were read last.
type definedTypes struct {
	types *apitypes.Types
	// source is the URL of their document. It has the hash of its content.
	source string
	// until is when the source is compared again.
	until time.Time
	// failures is the number of failed attempts since the last success.
	failures int
}

// Types implements reconcile.Kinds.
func (k *Kinds) Types(owner types.NamespacedName, id manifest.ID) *apitypes.Types {
	found, retry := k.Describe(id)
	if retry > 0 {
		k.notify(owner, retry)
	}
	return found
}

// Describe returns the types of a kind that is not built in. If they cannot be read, it returns the former ones, nil if
// there are none, and the time until it tries again.
func (k *Kinds) Describe(id manifest.ID) (found *apitypes.Types, retry time.Duration) {
	if !mayBeDefined(id) {
		return nil, 0
	}
	version := id.GroupVersionKind().GroupVersion()
	known, _, isCurrent := k.describedAs(version)
	if !isCurrent {
		known = k.readTypes(version)
	}
	if known.failures > 0 || known.types == nil {
		retry = max(settlingStep, known.until.Sub(k.now()))
	}
	return known.types, retry
}

// mayBeDefined reports whether a CustomResourceDefinition may define a kind.
func mayBeDefined(id manifest.ID) bool {
	return strings.Contains(id.GroupVersionKind().Group, ".") && !apitypes.IsBuiltIn(id)
}

// describedAs returns what was read last, and whether it has to be read again.
func (k *Kinds) describedAs(version schema.GroupVersion) (known definedTypes, changes int, isCurrent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known = k.defined[version]
	return known, k.changes, k.now().Before(known.until)
}

// readTypes reads the types, unless another caller has read them meanwhile.
func (k *Kinds) readTypes(version schema.GroupVersion) definedTypes {
	k.describing.Lock()
	defer k.describing.Unlock()
	known, changes, isCurrent := k.describedAs(version)
	if isCurrent {
		return known
	}
	err := known.renew(k.target.OpenAPIV3(), version)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch now, isSettled := k.now(), k.unsettledLocked(version.Group) == 0; {
	case changes != k.changes:
		known.until = now
	case !isSettled:
		known.until = now.Add(settlingStep)
	case err == nil:
		known.until, known.failures = now.Add(foundFor), 0
	default:
		if known.failures == 0 {
			k.logger.Info("the definitions of custom resources cannot be read: elements of their lists are found by content, not by key",
				"groupVersion", version.String(), "error", err.Error())
		}
		known.until = now.Add(min(unknownFor<<min(known.failures, 8), foundFor))
		known.failures++
	}
	k.defined[version] = known
	return known
}

// renew reads the types again if their source has changed.
func (d *definedTypes) renew(server openapi.Client, version schema.GroupVersion) error {
	source, err := documentOf(server, version)
	if err != nil || d.types != nil && source.ServerRelativeURL() == d.source {
		return err
	}
	found, err := typesIn(source)
	if err != nil {
		return err
	}
	d.types, d.source = found, source.ServerRelativeURL()
	return nil
}

// ReadTypes returns the types of a kind that is not built in, as a server describes them, nil for other kinds.
func ReadTypes(server openapi.Client, id manifest.ID) (*apitypes.Types, error) {
	if !mayBeDefined(id) {
		return nil, nil
	}
	source, err := documentOf(server, id.GroupVersionKind().GroupVersion())
	if err != nil {
		return nil, err
	}
	return typesIn(source)
}

func documentOf(server openapi.Client, version schema.GroupVersion) (openapi.GroupVersion, error) {
	documents, err := server.Paths()
	if err != nil {
		return nil, fmt.Errorf("read /openapi/v3: %w", err)
	}
	path := "apis/" + version.String()
	document, ok := documents[path]
	if !ok {
		return nil, fmt.Errorf("/openapi/v3 has no %s", path)
	}
	return document, nil
}

func typesIn(source openapi.GroupVersion) (*apitypes.Types, error) {
	document, err := source.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", source.ServerRelativeURL(), err)
	}
	return apitypes.FromOpenAPI(document)
}
