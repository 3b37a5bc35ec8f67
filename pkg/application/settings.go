package application

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode is what an agent does about drift.
type Mode string

// The modes. Enforce is the default.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
	Suspend Mode = "suspend"
)

// DeletionPolicy is what an agent does with the objects of a deleted Application.
type DeletionPolicy string

// The policies. Delete is the default, except for adopted objects. Orphan removes only our marks.
const (
	Delete DeletionPolicy = "delete"
	Orphan DeletionPolicy = "orphan"
)

// Guard is what the guard of the target does about a request that makes changes which the agent reverts.
type Guard string

// The values of [GuardAnnotation]. GuardWarn is the default.
const (
	GuardWarn Guard = "warn"
	GuardDeny Guard = "deny"
	GuardOff  Guard = "off"
)

// Settings are the annotations of an Application.
type Settings struct {
	Mode           Mode
	DeletionPolicy DeletionPolicy
	// DeletesAll reports that the user has set the policy Delete explicitly. It then also applies to
	// adopted objects, and to definitions of kinds.
	DeletesAll bool
	Adopt      bool
	// HoldUntil is zero if the Application is not held.
	HoldUntil time.Time
	// DenyHolds reports that holds on single objects do not count.
	DenyHolds bool
	// HeldBy is the user who set mode or hold, as the webhook recorded it. It is empty if no user did.
	HeldBy string
	// Guard is empty for the default.
	Guard    Guard
	Shutdown ShutdownSettings
	// ValuesFrom are the sources of the values of Secrets.
	ValuesFrom []ValuesFrom
	// After are the names of the Applications that have to be ready before the agent begins.
	After []string
}

// SettingsOf reads the annotations. An unreadable value counts as the one that changes least on the
// target: the mode Observe, orphaned objects, no adoption, a guard that warns.
func SettingsOf(cm *corev1.ConfigMap) (Settings, field.ErrorList) {
	r := reading{annotations: cm.Annotations}
	settings := Settings{
		Mode:           Mode(r.oneOf(ModeAnnotation, "enforce, observe or suspend", string(Observe), string(Enforce), string(Suspend))),
		DeletionPolicy: DeletionPolicy(r.oneOf(DeletionPolicyAnnotation, "delete or orphan", string(Orphan), string(Delete))),
		Adopt:          r.oneOf(AdoptAnnotation, "true or false", "false", "true") == "true",
		Guard:          Guard(r.oneOf(GuardAnnotation, "warn, deny or off", string(GuardWarn), string(GuardDeny), string(GuardOff))),
		DenyHolds:      r.oneOf(HoldAnnotation, "deny; to hold, set "+HoldUntilAnnotation, unreadable, "deny") == "deny",
	}
	if _, ok := cm.Annotations[ModeAnnotation]; !ok {
		settings.Mode = Enforce
	}
	if _, ok := cm.Annotations[DeletionPolicyAnnotation]; !ok {
		settings.DeletionPolicy = Delete
	}
	settings.DeletesAll = cm.Annotations[DeletionPolicyAnnotation] == string(Delete)
	if text, ok := cm.Annotations[HoldUntilAnnotation]; ok {
		until, err := ParseHold(text)
		if err != nil {
			r.refuse(HoldUntilAnnotation, err.Error())
			settings.Mode = Observe
		}
		settings.HoldUntil = until
	}
	if text, ok := cm.Annotations[ValuesFromAnnotation]; ok {
		values, err := ParseValuesFrom(text)
		if err != nil {
			r.refuse(ValuesFromAnnotation, err.Error())
			settings.Mode = Observe
		}
		settings.ValuesFrom = values
	}
	r.oneOf(InitContainersAnnotation, "true or false", "false", "true")
	settings.Shutdown = r.shutdown()
	settings.After = r.after(cm.Name)
	settings.HeldBy = cm.Annotations[HeldByAnnotation]
	return settings, r.refusals
}

// Restraint returns why the agent reverts no drift of the Application now: "mode suspend", or "hold
// until 2026-01-02T15:04:05Z". It returns "" if the agent reverts drift.
func (w Settings) Restraint(now time.Time) string {
	switch {
	case w.Mode != Enforce:
		return "mode " + string(w.Mode)
	case w.HoldUntil.After(now):
		return "hold until " + w.HoldUntil.UTC().Format(time.RFC3339)
	}
	return ""
}

// The bounds of the annotations about the shutdown.
const (
	leastGraceTime = time.Second
	mostGraceTime  = 24 * time.Hour
	mostRetries    = 100
)

// shutdown reads the annotations about the shutdown. An unreadable value counts as the agent's
// default, and an unreadable strategy as the one that deletes nothing.
func (r *reading) shutdown() ShutdownSettings {
	for _, word := range wordsOf(r.annotations[HooksAnnotation]) {
		if word != string(Complete) && word != string(Shutdown) {
			r.refuse(HooksAnnotation, "it has to be complete, shutdown, or both with a comma between")
			break
		}
	}
	settings := ShutdownSettings{
		Strategy: ShutdownStrategy(r.oneOf(ShutdownStrategyAnnotation, "give_up or delete", string(GiveUpShutdown), string(DeleteAnyway))),
		Retry:    r.annotations[ShutdownRetryAnnotation],
	}
	if text, ok := r.annotations[ShutdownGraceTimeAnnotation]; ok {
		grace, err := parseGraceTime(text)
		if err != nil || grace < leastGraceTime || grace > mostGraceTime {
			r.refuse(ShutdownGraceTimeAnnotation, fmt.Sprintf("it has to be a number of seconds or a duration like 90s or 5m, of at least %s and at most %s", leastGraceTime, mostGraceTime))
		} else {
			settings.GraceTime = &grace
		}
	}
	if text, ok := r.annotations[ShutdownRetryCountAnnotation]; ok {
		retries, err := strconv.Atoi(text)
		if err != nil || retries < 0 || retries > mostRetries {
			r.refuse(ShutdownRetryCountAnnotation, fmt.Sprintf("it has to be a number from 0 to %d", mostRetries))
		} else {
			settings.Retries = &retries
		}
	}
	return settings
}

// mostAfter is the largest number of names in [AfterAnnotation].
const mostAfter = 16

// after returns the names of the Applications that the Application of this name waits for. An invalid name stays in the list: the
// Application then waits, which changes nothing on the target.
func (r *reading) after(self string) []string {
	text, ok := r.annotations[AfterAnnotation]
	if !ok {
		return nil
	}
	names := wordsOf(text)
	if wrong := wrongAfter(names, self); wrong != "" {
		r.refuse(AfterAnnotation, fmt.Sprintf("it has to be the names of 1 to %d other Applications of the namespace, with a comma between: %s", mostAfter, wrong))
	}
	return names
}

// wrongAfter returns why an Application cannot wait for Applications of these names, or "".
func wrongAfter(names []string, self string) string {
	if len(names) == 0 || len(names) > mostAfter {
		return fmt.Sprintf("there are %d", len(names))
	}
	for i, name := range names {
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			return fmt.Sprintf("%q cannot be a name", name)
		case name == self:
			return name + " is the Application itself"
		case slices.Contains(names[:i], name):
			return name + " occurs twice"
		}
	}
	return ""
}

// parseGraceTime reads a duration. Krake counts seconds.
func parseGraceTime(text string) (time.Duration, error) {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(seconds, 2*int(mostGraceTime/time.Second))) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// unreadable stands for an invalid value of an annotation with only one valid value.
const unreadable = "\x00"

// reading collects the errors of the annotations that it reads.
type reading struct {
	annotations map[string]string
	refusals    field.ErrorList
}

// oneOf returns the value of the annotation, or "" without one. For an invalid value it returns the
// first possible one, which is the most careful.
func (r *reading) oneOf(annotation, wanted string, possible ...string) string {
	value, ok := r.annotations[annotation]
	if !ok || slices.Contains(possible, value) {
		return value
	}
	r.refuse(annotation, "it has to be "+wanted)
	return possible[0]
}

func (r *reading) refuse(annotation, wanted string) {
	r.refusals = append(r.refusals, field.Invalid(field.NewPath("metadata", "annotations").Key(annotation), r.annotations[annotation], wanted))
}

// ParseHold reads the value of [HoldUntilAnnotation].
func ParseHold(value string) (time.Time, error) {
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, errors.New("it has to be a time as in RFC 3339: 2026-01-02T15:04:05Z")
	}
	return until, nil
}
