package application

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode is what an agent does about drift.
type Mode string

// The modes. Enforce is the default.
const (
	// Enforce: the objects are kept as the Application says.
	Enforce Mode = "enforce"
	// Observe: what differs is reported, and nothing is written to the target.
	Observe Mode = "observe"
	// Suspend: the objects are not even looked at.
	Suspend Mode = "suspend"
)

// DeletionPolicy is what becomes of the objects of a deleted Application.
type DeletionPolicy string

// The policies. Delete is the default, but for adopted objects; Orphan takes our
// marks off the objects and leaves them where they are.
const (
	Delete DeletionPolicy = "delete"
	Orphan DeletionPolicy = "orphan"
)

// Wishes are what the annotations of an Application say.
type Wishes struct {
	Mode           Mode
	DeletionPolicy DeletionPolicy
	// DeletesAdopted: the policy is said to be Delete, and so goes for what was
	// adopted, too.
	DeletesAdopted bool
	Adopt          bool
	// HoldUntil is zero if the Application is not held.
	HoldUntil time.Time
	// DenyHolds: holds on single objects do not count.
	DenyHolds bool
	Shutdown  ShutdownWishes
}

// WishesOf reads the annotations. In the place of a value that cannot be read is
// what changes the least on the target: an Application whose mode or hold nobody
// understands is observed, and its objects are orphaned and not adopted.
func WishesOf(cm *corev1.ConfigMap) (Wishes, field.ErrorList) {
	r := reading{annotations: cm.Annotations}
	wishes := Wishes{
		Mode:           Mode(r.oneOf(ModeAnnotation, "enforce, observe or suspend", string(Observe), string(Enforce), string(Suspend))),
		DeletionPolicy: DeletionPolicy(r.oneOf(DeletionPolicyAnnotation, "delete or orphan", string(Orphan), string(Delete))),
		Adopt:          r.oneOf(AdoptAnnotation, "true or false", "false", "true") == "true",
		DenyHolds:      r.oneOf(HoldAnnotation, "deny; to hold, set "+HoldUntilAnnotation, unreadable, "deny") == "deny",
	}
	if _, ok := cm.Annotations[ModeAnnotation]; !ok {
		wishes.Mode = Enforce
	}
	if _, ok := cm.Annotations[DeletionPolicyAnnotation]; !ok {
		wishes.DeletionPolicy = Delete
	}
	wishes.DeletesAdopted = cm.Annotations[DeletionPolicyAnnotation] == string(Delete)
	if text, ok := cm.Annotations[HoldUntilAnnotation]; ok {
		until, err := ParseHold(text)
		if err != nil {
			r.refuse(HoldUntilAnnotation, err.Error())
			wishes.Mode = Observe
		}
		wishes.HoldUntil = until
	}
	r.oneOf(InitContainersAnnotation, "true or false", "false", "true")
	wishes.Shutdown = r.shutdown()
	return wishes, r.refusals
}

// Bounds of what an Application says of its shutdown.
const (
	leastGraceTime = time.Second
	mostGraceTime  = 24 * time.Hour
	mostRetries    = 100
)

// shutdown reads what is said of the shutdown. In the place of what cannot be read
// is what the agent says, and of a strategy, that which deletes nothing.
func (r *reading) shutdown() ShutdownWishes {
	for _, word := range hookWords(r.annotations[HooksAnnotation]) {
		if word != string(Complete) && word != string(Shutdown) {
			r.refuse(HooksAnnotation, "it has to be complete, shutdown, or both with a comma between")
			break
		}
	}
	wishes := ShutdownWishes{
		Strategy: ShutdownStrategy(r.oneOf(ShutdownStrategyAnnotation, "give_up or delete", string(GiveUpShutdown), string(DeleteAnyway))),
		Retry:    r.annotations[ShutdownRetryAnnotation],
	}
	if text, ok := r.annotations[ShutdownGraceTimeAnnotation]; ok {
		grace, err := parseGraceTime(text)
		if err != nil || grace < leastGraceTime || grace > mostGraceTime {
			r.refuse(ShutdownGraceTimeAnnotation, fmt.Sprintf("it has to be a number of seconds or a duration like 90s or 5m, of at least %s and at most %s", leastGraceTime, mostGraceTime))
		} else {
			wishes.GraceTime = &grace
		}
	}
	if text, ok := r.annotations[ShutdownRetryCountAnnotation]; ok {
		retries, err := strconv.Atoi(text)
		if err != nil || retries < 0 || retries > mostRetries {
			r.refuse(ShutdownRetryCountAnnotation, fmt.Sprintf("it has to be a number from 0 to %d", mostRetries))
		} else {
			wishes.Retries = &retries
		}
	}
	return wishes
}

// parseGraceTime reads a duration. The reference counts seconds.
func parseGraceTime(text string) (time.Duration, error) {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(seconds, 2*int(mostGraceTime/time.Second))) * time.Second, nil
	}
	return time.ParseDuration(text)
}

// unreadable stands for a value where there is only one that means anything.
const unreadable = "\x00"

// reading is how annotations are read.
type reading struct {
	annotations map[string]string
	refusals    field.ErrorList
}

// oneOf gives the value if it is one of these, the first of which is the careful
// one, and the careful one if not; nothing if the annotation is not there.
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
		return time.Time{}, fmt.Errorf("it has to be a time as in RFC 3339: %s", "2026-01-02T15:04:05Z")
	}
	return until, nil
}
