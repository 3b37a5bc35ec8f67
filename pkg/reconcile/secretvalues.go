package reconcile

import (
	"maps"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// wanted returns what a Secret should hold. A value that this process has put there, or
// into the same Secret of another namespace, or that is there, is kept if it is the one
// that was recorded; the others are new.
func (k secretKeeper) wanted(secret *hookSecret, live map[string][]byte) (map[string][]byte, error) {
	recorded, former := secret.recorded(), maps.Clone(live)
	maps.DeleteFunc(former, func(key string, value []byte) bool {
		digest, ok := recorded[key]
		return ok && digest != application.DigestOf(value)
	})
	for key, value := range k.remembered(secret) {
		if digest, ok := recorded[key]; !ok || former[key] == nil || digest == application.DigestOf(value) {
			if former == nil {
				former = map[string][]byte{}
			}
			former[key] = value
		}
	}
	return k.secrets.Data(k.pass.app.NamespacedName, k.pass.app.UID, secret.hook, secret.certs, former)
}

// remembered are the values that this process has put into a Secret. All namespaces have
// the same token.
func (k secretKeeper) remembered(secret *hookSecret) map[string][]byte {
	values := k.pass.memory.secrets.values
	if own := values[secret.object.plan.ID]; own != nil {
		return own
	}
	for _, other := range k.pass.secrets {
		if other.hook == secret.hook && other.certs == secret.certs && values[other.object.plan.ID] != nil {
			return values[other.object.plan.ID]
		}
	}
	return nil
}

// leftWith are the digests of the values that the agent left in a Secret, none if it was
// never made.
func (k secretKeeper) leftWith(secret *hookSecret) map[string]string {
	values := k.pass.memory.secrets.values[secret.object.plan.ID]
	if values == nil {
		return secret.recorded()
	}
	digests := make(map[string]string, len(values))
	for key, value := range values {
		digests[key] = application.DigestOf(value)
	}
	return digests
}
