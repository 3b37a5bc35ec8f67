package reconcile

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Secrets makes what the Secrets of hooks hold.
type Secrets interface {
	// Data gives the data of the Secret with the token of a hook, or of that with its
	// certificates. What is still good of the former data is kept; nil is none.
	Data(app types.NamespacedName, uid types.UID, hook application.Hook, certs bool, former map[string][]byte) (map[string][]byte, error)
}

// secretsInterval is how often the Secrets of hooks are read. They are not watched:
// whoever watches Secrets sees all of them.
const secretsInterval = time.Minute

// secretsMemory has the values of the Secrets of hooks, by which they are restored.
// They go to the target, and nowhere else.
type secretsMemory struct {
	values map[manifest.ID]map[string][]byte
	// checked is when they were looked at last, for this spec and in this mode, and
	// verdicts what was found then.
	spec     string
	mode     application.Mode
	checked  time.Time
	verdicts map[manifest.ID]verdict
}

// hookSecret is a Secret of a hook, as it is to be on the target.
type hookSecret struct {
	resource

	hook  application.Hook
	certs bool
	// unclaimed: the hub has not taken note of it yet.
	unclaimed bool
	verdict   verdict
}

// hookSecrets brings the Secrets of hooks to what they should hold, or where nothing
// may be written says what is not so.
func (p *pass) hookSecrets(ctx context.Context) {
	known := &p.memory.secrets
	p.forgetSecrets()
	if p.areChecked() {
		for i := range p.secrets {
			p.secrets[i].verdict = known.verdicts[p.secrets[i].ID]
		}
		return
	}
	settled, verdicts := true, map[manifest.ID]verdict{}
	for i := range p.secrets {
		secret := &p.secrets[i]
		p.checkSecret(ctx, secret)
		verdicts[secret.ID] = secret.verdict
		settled = settled && !secret.unclaimed && secret.verdict.err == nil
	}
	if settled {
		known.spec, known.mode, known.checked, known.verdicts = p.spec, p.app.Wishes.Mode, p.now, verdicts
	}
}

// forgetSecrets forgets what was of hooks that are off: one that is on again has
// another token.
func (p *pass) forgetSecrets() {
	maps.DeleteFunc(p.memory.secrets.values, func(id manifest.ID, _ map[string][]byte) bool { return !p.isHookSecret(id) })
	if !p.enforces() {
		return // the Secrets are there still
	}
	p.app.Hooks.Tokens = maps.Clone(p.app.Hooks.Tokens)
	maps.DeleteFunc(p.app.Hooks.Tokens, func(hook application.Hook, _ string) bool {
		return !slices.ContainsFunc(p.secrets, func(secret hookSecret) bool { return secret.hook == hook })
	})
}

// areChecked tells if the Secrets were looked at not long ago, and what was found is
// stored or waits for it: what was pending is given up at times.
func (p *pass) areChecked() bool {
	known := &p.memory.secrets
	if slices.ContainsFunc(p.secrets, p.isUntold) {
		return false
	}
	if known.spec != p.spec || known.mode != p.app.Wishes.Mode || p.now.Sub(known.checked) >= secretsInterval {
		return false
	}
	for _, secret := range p.secrets {
		if again := known.verdicts[secret.ID].again; !again.IsZero() && !again.After(p.now) {
			return false
		}
	}
	return true
}

// isUntold tells if the Application does not say of which token it is that a Secret holds.
func (p *pass) isUntold(secret hookSecret) bool {
	values := p.memory.secrets.values[secret.ID]
	return p.enforces() && !secret.certs && values != nil && p.app.Hooks.Tokens[secret.hook] != application.DigestOf(values[application.TokenKey(secret.hook)])
}

// checkSecret looks at one of them, unless there is a reason not to.
func (p *pass) checkSecret(ctx context.Context, secret *hookSecret) {
	resting, rests := p.memory.object(secret.ID).failed.rests(p.now)
	switch {
	case secret.unclaimed:
		secret.verdict = verdict{reason: reasonOf(errUnclaimed), message: explain(errUnclaimed), err: errUnclaimed}
	case p.lost != nil:
		secret.verdict = verdict{reason: reasonOf(p.lost), message: explain(p.lost), err: p.lost}
	case rests:
		secret.verdict = resting
	case !p.enforces():
		p.observeSecret(ctx, secret)
	default:
		p.ensureSecret(ctx, secret)
	}
}

// secretRepair is what was decided about a Secret, on the live one.
type secretRepair struct {
	wanted map[string][]byte
	drift  schema.Differences
	// altered: somebody has changed it.
	altered bool
	culprit blame.Culprit
	held    time.Time
}

// ensureSecret brings a Secret to what it should hold. An object of that name that is
// not ours is left alone.
func (p *pass) ensureSecret(ctx context.Context, secret *hookSecret) {
	var r secretRepair
	live, err := p.target.Patch(ctx, secret.Ref, nil, func(live map[string]any) (_ schema.Patch, err error) {
		r, err = p.decideSecret(secret, live)
		return r.drift.Patch(), err
	})
	created := apierrors.IsNotFound(err)
	if created {
		if r.wanted, err = p.valuesOf(secret, nil); err == nil {
			live, err = p.target.Create(ctx, secret.Ref, secret.holding(r.wanted))
		}
	}
	if err != nil {
		p.failSecret(secret, err)
		return
	}
	known := p.memory.object(secret.ID)
	known.failed, known.proved = failures{}, uidOf(live)
	if created || len(r.drift) > 0 {
		p.toldSecret(secret, created, r)
	}
	if !r.held.IsZero() {
		secret.verdict = verdict{reason: reasonHeld, message: "held until " + r.held.UTC().Format(time.RFC3339), again: r.held}
		return
	}
	p.keepValues(secret, r.wanted)
}

// keepValues takes note of what a Secret holds now.
func (p *pass) keepValues(secret *hookSecret, values map[string][]byte) {
	if p.memory.secrets.values == nil {
		p.memory.secrets.values = map[manifest.ID]map[string][]byte{}
	}
	p.memory.secrets.values[secret.ID] = values
	secret.digest(values)
	if secret.certs {
		return
	}
	if p.app.Hooks.Tokens == nil {
		p.app.Hooks.Tokens = map[application.Hook]string{}
	}
	p.app.Hooks.Tokens[secret.hook] = application.DigestOf(values[application.TokenKey(secret.hook)])
}

// decideSecret decides on a live Secret. Our marks are put back on one that is held.
func (p *pass) decideSecret(secret *hookSecret, live map[string]any) (r secretRepair, err error) {
	if err := p.ownSecret(secret, live); err != nil {
		return secretRepair{}, err
	}
	values := dataOf(live)
	if r.wanted, err = p.valuesOf(secret, values); err != nil {
		return secretRepair{}, err
	}
	r.drift = secret.differences(r.wanted, live)
	r.altered, r.culprit = len(p.altered(secret, live)) > 0, blame.Of(live, pathsOf(r.drift), p.FieldManager)
	if held, _ := heldUntil(p.app.Wishes, nil, "", p.MaxHold, p.now); !held.IsZero() {
		marks, fields := splitMarks(r.drift)
		if r.drift = marks; len(fields) > 0 {
			r.held = held
		}
	}
	return r, nil
}

// ownSecret gives an error for a live Secret that is not ours: the same rules as for
// other objects, see repair.own, but nothing is adopted.
func (p *pass) ownSecret(secret *hookSecret, live map[string]any) error {
	owner, marked := application.OwnerOf(live)
	proved := p.memory.object(secret.ID).proved
	switch {
	case secret.marks().Prove(live), marked && owner == p.app.NamespacedName, proved != "" && uidOf(live) == proved:
		return nil
	case marked:
		return fmt.Errorf("%w: %s", ownedError{owner.String()}, secret.ID)
	}
	return fmt.Errorf("%w: %s", errForeign, secret.ID)
}

// differences are what a live Secret has otherwise than it should.
func (s *hookSecret) differences(values map[string][]byte, live map[string]any) schema.Differences {
	return s.mark(s.mangled).Compare(s.holding(values), live).Drift()
}

// altered gives the fields of a live Secret that are not as it was left.
func (p *pass) altered(secret *hookSecret, live map[string]any) []schema.Path {
	values := dataOf(live)
	paths := pathsOf(secret.differences(values, live))
	for key, digest := range p.digestsOf(secret) {
		if value, ok := values[key]; !ok || application.DigestOf(value) != digest {
			paths = append(paths, schema.Path{{Field: "data", Index: -1}, {Field: key, Index: -1}})
		}
	}
	slices.SortFunc(paths, func(a, b schema.Path) int { return strings.Compare(a.String(), b.String()) })
	return paths
}

// observeSecret says what would have to be done about a Secret.
func (p *pass) observeSecret(ctx context.Context, secret *hookSecret) {
	live, err := p.target.Patch(ctx, secret.Ref, nil, func(live map[string]any) (schema.Patch, error) {
		return nil, p.ownSecret(secret, live)
	})
	switch {
	case apierrors.IsNotFound(err):
		secret.verdict = verdict{reason: reasonObserved, message: "the object is missing"}
	case err != nil:
		p.failSecret(secret, err)
	default:
		if fields := p.altered(secret, live); len(fields) > 0 {
			secret.verdict = verdict{reason: reasonObserved, fields: fields}
		}
	}
}

func (p *pass) failSecret(secret *hookSecret, err error) {
	secret.verdict = verdict{reason: reasonOf(err), message: told(err), err: err}
	if unconnected(err) {
		p.lost = err
	}
	switch secret.verdict.reason {
	case reasonAlreadyExists, reasonOwnedByAnother, reasonTerminating, reasonInvalid:
		secret.verdict.err, secret.verdict.again = nil, p.now.Add(slowRetry)
	default:
		p.memory.object(secret.ID).failed.add(secret.verdict, p.now)
	}
}

// valuesOf gives what a Secret should hold: of what this process has put there, or
// into the same Secret of another namespace, and of what is there, that which was
// recorded; where there is none of that, something new.
func (p *pass) valuesOf(secret *hookSecret, live map[string][]byte) (map[string][]byte, error) {
	recorded, former := secret.recorded(), maps.Clone(live)
	maps.DeleteFunc(former, func(key string, value []byte) bool {
		digest, ok := recorded[key]
		return ok && digest != application.DigestOf(value)
	})
	for key, value := range p.rememberedOf(secret) {
		if digest, ok := recorded[key]; !ok || former[key] == nil || digest == application.DigestOf(value) {
			if former == nil {
				former = map[string][]byte{}
			}
			former[key] = value
		}
	}
	return p.Secrets.Data(p.app.NamespacedName, p.app.UID, secret.hook, secret.certs, former)
}

// rememberedOf gives what this process has put into a Secret. There is one token for
// all namespaces.
func (p *pass) rememberedOf(secret *hookSecret) map[string][]byte {
	if own := p.memory.secrets.values[secret.ID]; own != nil {
		return own
	}
	for _, other := range p.secrets {
		if other.hook == secret.hook && other.certs == secret.certs && p.memory.secrets.values[other.ID] != nil {
			return p.memory.secrets.values[other.ID]
		}
	}
	return nil
}

// digestsOf gives the digests of what a Secret was left with, none if it was never made.
func (p *pass) digestsOf(secret *hookSecret) map[string]string {
	values := p.memory.secrets.values[secret.ID]
	if values == nil {
		return secret.recorded()
	}
	digests := make(map[string]string, len(values))
	for key, value := range values {
		digests[key] = application.DigestOf(value)
	}
	return digests
}

// recorded gives the digests that are in the documents.
func (s *hookSecret) recorded() map[string]string {
	data, _ := s.desired()["data"].(map[string]any)
	digests := make(map[string]string, len(data))
	for key, value := range data {
		if digest, ok := value.(string); ok {
			digests[key] = digest
		}
	}
	return digests
}

// dataOf gives the values of a live Secret.
func dataOf(live map[string]any) map[string][]byte {
	data, _ := live["data"].(map[string]any)
	values := make(map[string][]byte, len(data))
	for key, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			values[key] = decoded
		}
	}
	return values
}

// holding gives the Secret with values.
func (s *hookSecret) holding(values map[string][]byte) map[string]any {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	body := s.body()
	body["data"] = data
	return body
}

// digest puts the digests of the values into the desired state.
func (s *hookSecret) digest(values map[string][]byte) {
	data := map[string]any{}
	for key, value := range values {
		data[key] = application.DigestOf(value)
	}
	desired := maps.Clone(s.desired())
	desired["data"] = data
	s.wanted = treeOf(desired)
}

// toldSecret reports a Secret that was made, or mended: where somebody has deleted or
// changed what was there, that was a drift.
func (p *pass) toldSecret(secret *hookSecret, created bool, r secretRepair) {
	outcome := Outcome{Action: Configured, Object: secret.ID, UID: p.memory.object(secret.ID).proved, Paths: pathsOf(r.drift)}
	made := len(p.digestsOf(secret)) > 0
	switch {
	case created && made:
		outcome.Action = Recreated
	case created:
		outcome.Action = Created
	case made && r.altered:
		outcome.Action = Reverted
	}
	if outcome.Action == Recreated || outcome.Action == Reverted {
		outcome.Culprit = r.culprit
		p.app.Status.Remember(p.driftOf(secret.ID, drift{differences: r.drift, culprit: r.culprit, repaired: outcome.Action}))
	}
	p.Report(p.app, outcome)
}

// isHookSecret tells if what is held is one of the Secrets that the hooks want.
func (p *pass) isHookSecret(held manifest.ID) bool {
	return slices.ContainsFunc(p.secrets, func(secret hookSecret) bool { return sameObject(secret.ID, held) })
}

// secretVerdicts are those on the Secrets of hooks.
func (p *pass) secretVerdicts() []verdict {
	var verdicts []verdict
	for i := range p.secrets {
		if v := p.secrets[i].verdict; v.reason != "" {
			v.object = p.secrets[i].ID
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// secretDocuments are what is published of the Secrets of hooks: digests.
func (p *pass) secretDocuments() (applied, observed, learned []map[string]any) {
	for i := range p.secrets {
		secret := &p.secrets[i]
		applied = append(applied, secret.desired())
		if secret.desired()["data"] == nil {
			continue
		}
		observed = append(observed, secret.mangled.ObservedPart(secret.desired()))
		learned = append(learned, secret.mangled.Learned(secret.desired(), secret.manifest()))
	}
	return applied, observed, learned
}

// secretsDue is when the Secrets of hooks are to be looked at again, zero for never.
func (p *pass) secretsDue() time.Time {
	if known := &p.memory.secrets; len(p.secrets) > 0 && known.spec == p.spec && known.mode == p.app.Wishes.Mode {
		return known.checked.Add(secretsInterval)
	}
	return time.Time{}
}

// errNoHooks is the error of an Application with hooks where there are none.
var errNoHooks = fmt.Errorf("%w: annotation %s: this agent has no endpoint for hooks: leave it out, or have an administrator install the hooks (overlays/hooks)", errRefused, application.HooksAnnotation)
