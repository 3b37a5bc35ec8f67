package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// secretsInterval is the interval of reads of the Secrets of hooks. They are not watched, because a
// client that watches Secrets sees all of them.
const secretsInterval = time.Minute

// secretKeeper repairs the Secrets of hooks. If it must not write, it reports the differences.
type secretKeeper struct {
	pass     *pass
	secrets  Secrets
	reporter *reporter
}

// keep reads and repairs the Secrets, unless it did so recently.
func (k secretKeeper) keep(ctx context.Context) {
	p, known := k.pass, &k.pass.memory.secrets
	k.forgetUnwanted()
	if k.areChecked() {
		for _, secret := range p.secrets {
			secret.verdict = known.verdicts[secret.plan.ID]
		}
		return
	}
	settled, verdicts := true, map[manifest.ID]status.Verdict{}
	for _, secret := range p.secrets {
		k.check(ctx, secret)
		verdicts[secret.plan.ID] = secret.verdict
		settled = settled && !secret.isUnclaimed && secret.verdict.Err == nil
	}
	if settled {
		known.spec, known.mode, known.checked, known.verdicts = p.spec, p.app.Settings.Mode, p.inputs.now, verdicts
	}
}

// forgetUnwanted forgets values and tokens of disabled hooks. A hook that is enabled again has
// another token.
func (k secretKeeper) forgetUnwanted() {
	p := k.pass
	maps.DeleteFunc(p.memory.secrets.values, func(id manifest.ID, _ map[string][]byte) bool { return !p.isHookSecret(id) })
	if !p.inputs.enforces {
		return // the Secrets still exist
	}
	p.app.Hooks.Tokens = maps.Clone(p.app.Hooks.Tokens)
	maps.DeleteFunc(p.app.Hooks.Tokens, func(hook application.Hook, _ string) bool {
		return !slices.ContainsFunc(p.secrets, func(secret *hookSecret) bool { return secret.purpose.Hook == hook })
	})
}

// areChecked reports whether the Secrets were read recently, and the Application, stored or
// pending, has the result.
func (k secretKeeper) areChecked() bool {
	p, known := k.pass, &k.pass.memory.secrets
	if slices.ContainsFunc(p.secrets, k.isUnrecorded) {
		return false
	}
	if known.spec != p.spec || known.mode != p.app.Settings.Mode || p.inputs.now.Sub(known.checked) >= secretsInterval {
		return false
	}
	return !slices.ContainsFunc(p.secrets, func(secret *hookSecret) bool {
		again := known.verdicts[secret.plan.ID].Again
		return !again.IsZero() && !again.After(p.inputs.now)
	})
}

// isUnrecorded reports whether the Application lacks the digest of the Secret's token.
func (k secretKeeper) isUnrecorded(secret *hookSecret) bool {
	values := k.pass.memory.secrets.values[secret.plan.ID]
	return k.pass.inputs.enforces && !secret.purpose.Certs && values != nil &&
		k.pass.app.Hooks.Tokens[secret.purpose.Hook] != application.DigestOf(values[application.TokenKey(secret.purpose.Hook)])
}

// check reads and repairs one Secret, unless it has to leave it alone.
func (k secretKeeper) check(ctx context.Context, secret *hookSecret) {
	switch {
	case secret.isUnclaimed:
		secret.fail(errUnclaimed)
	case k.pass.lost != nil:
		secret.fail(k.pass.lost)
	case secret.rest():
	case !secret.inputs.enforces:
		k.observe(ctx, secret)
	default:
		k.repair(ctx, secret)
	}
}

// secretDecision is the decision on a live Secret.
type secretDecision struct {
	wanted map[string][]byte
	drift  schema.Differences
	// isAltered reports that the Secret differs from the agent's last write.
	isAltered bool
	culprit   blame.Culprit
	held      time.Time
}

// repair makes a Secret match the desired state. It does not change another client's object of that
// name.
func (k secretKeeper) repair(ctx context.Context, secret *hookSecret) {
	var d secretDecision
	target, ref := k.pass.target, secret.plan.Ref
	live, err := target.Patch(ctx, ref, nil, func(live map[string]any) (_ schema.Patch, err error) {
		d, err = k.decide(ctx, secret, live)
		return d.drift.Patch(), err
	})
	created := apierrors.IsNotFound(err)
	if created {
		if d.wanted, err = k.wanted(secret, nil); err == nil {
			live, err = target.Create(ctx, ref, secret.holding(d.wanted))
		}
	}
	if err != nil {
		k.fail(secret, err)
		return
	}
	secret.memory.failures, secret.memory.proved = pacing.Failures{}, uidOf(live)
	if created || len(d.drift) > 0 {
		k.reportRepair(secret, created, d)
	}
	if !d.held.IsZero() {
		secret.verdict = heldVerdict(d.held)
		return
	}
	k.recordValues(secret, d.wanted)
}

// decide decides on a live Secret. Our marks are restored on a held Secret too.
func (k secretKeeper) decide(ctx context.Context, secret *hookSecret, live map[string]any) (d secretDecision, err error) {
	if err := k.checkOwner(ctx, secret, live); err != nil {
		return secretDecision{}, err
	}
	if d.wanted, err = k.wanted(secret, valuesOf(live)); err != nil {
		return secretDecision{}, err
	}
	s := secret.inputs
	d.drift = secret.differences(d.wanted, live)
	d.isAltered, d.culprit = len(secret.altered(k.leftWith(secret), live)) > 0, blame.Of(live, pathsOf(d.drift), s.fieldManager)
	if held, _ := pacing.HeldUntil(s.settings, nil, "", s.maxHold, s.now); !held.IsZero() {
		marks, fields := plan.SplitMarks(d.drift)
		if d.drift = marks; len(fields) > 0 {
			d.held = held
		}
	}
	return d, nil
}

// checkOwner returns an error for a live Secret that is not ours. The agent adopts no Secret.
func (k secretKeeper) checkOwner(ctx context.Context, secret *hookSecret, live map[string]any) error {
	_, err := ownership{app: k.pass.app.NamespacedName}.check(ctx, secret.object, live)
	return err
}

// observe reports the pending repairs of a Secret.
func (k secretKeeper) observe(ctx context.Context, secret *hookSecret) {
	live, err := k.pass.target.Patch(ctx, secret.plan.Ref, nil, func(live map[string]any) (schema.Patch, error) {
		return nil, k.checkOwner(ctx, secret, live)
	})
	switch {
	case apierrors.IsNotFound(err):
		secret.verdict = status.Verdict{Reason: status.ObserveMode, Message: "the object is missing"}
	case err != nil:
		k.fail(secret, err)
	default:
		if fields := secret.altered(k.leftWith(secret), live); len(fields) > 0 {
			secret.verdict = status.Verdict{Reason: status.ObserveMode, Fields: fields}
		}
	}
}

// fail sets the verdict on an error. No event reports changes of a Secret, so retries of errors
// that others must resolve are slow.
func (k secretKeeper) fail(secret *hookSecret, err error) {
	secret.fail(err)
	if apierror.IsUnconnected(err) {
		k.pass.lost = err
	}
	if reason, _ := status.Of(secret.verdict.Reason); reason.Retry != status.Backoff {
		secret.verdict.Again = secret.inputs.now.Add(slowRetry)
		return
	}
	secret.countFailure()
}

// wanted returns the desired values of a Secret. It keeps a value of the live Secret, or one that
// this process wrote in any namespace, if it has the recorded digest. All others are new.
func (k secretKeeper) wanted(secret *hookSecret, live map[string][]byte) (map[string][]byte, error) {
	recorded, former := secret.recorded(), map[string][]byte{}
	maps.Copy(former, live)
	maps.DeleteFunc(former, func(key string, value []byte) bool {
		digest, ok := recorded[key]
		return ok && digest != application.DigestOf(value)
	})
	for key, value := range k.remembered(secret) {
		if digest, ok := recorded[key]; !ok || former[key] == nil || digest == application.DigestOf(value) {
			former[key] = value
		}
	}
	return k.secrets.Data(k.pass.app.NamespacedName, k.pass.app.UID, secret.purpose.Hook, secret.purpose.Certs, former)
}

// remembered returns the values that this process wrote to a Secret. All namespaces have the same
// token.
func (k secretKeeper) remembered(secret *hookSecret) map[string][]byte {
	values := k.pass.memory.secrets.values
	if own := values[secret.plan.ID]; own != nil {
		return own
	}
	for _, other := range k.pass.secrets {
		if other.purpose == secret.purpose && values[other.plan.ID] != nil {
			return values[other.plan.ID]
		}
	}
	return nil
}

// leftWith returns the digests of the values in the agent's last write of a Secret. It returns none
// if the agent never wrote it.
func (k secretKeeper) leftWith(secret *hookSecret) map[string]any {
	if values := k.pass.memory.secrets.values[secret.plan.ID]; values != nil {
		return digestsOf(values)
	}
	return secret.recorded()
}

// recordValues records the present values of a Secret.
func (k secretKeeper) recordValues(secret *hookSecret, values map[string][]byte) {
	k.pass.memory.secrets.values[secret.plan.ID] = values
	secret.record(values)
	if secret.purpose.Certs {
		return
	}
	app := k.pass.app
	if app.Hooks.Tokens == nil {
		app.Hooks.Tokens = map[application.Hook]string{}
	}
	app.Hooks.Tokens[secret.purpose.Hook] = application.DigestOf(values[application.TokenKey(secret.purpose.Hook)])
}

// reportRepair reports a created or patched Secret. It is a drift if the Secret was deleted or
// changed after the agent had made it.
func (k secretKeeper) reportRepair(secret *hookSecret, created bool, d secretDecision) {
	outcome := status.Outcome{Action: status.Configured, Paths: pathsOf(d.drift)}
	wasMade := len(k.leftWith(secret)) > 0
	switch {
	case created && wasMade:
		outcome.Action = status.Recreated
	case created:
		outcome.Action = status.Created
	case wasMade && d.isAltered:
		outcome.Action = status.Reverted
	}
	if outcome.Action == status.Recreated || outcome.Action == status.Reverted {
		outcome.Culprit = d.culprit
		k.reporter.remember(secret.object, status.Drift{Differences: d.drift, Culprit: d.culprit, Repaired: outcome.Action})
	}
	k.reporter.about(secret.object, outcome)
}

// due returns when to read the Secrets again, zero for never.
func (k secretKeeper) due() time.Time {
	p := k.pass
	if known := &p.memory.secrets; len(p.secrets) > 0 && known.spec == p.spec && known.mode == p.app.Settings.Mode {
		return known.checked.Add(secretsInterval)
	}
	return time.Time{}
}
