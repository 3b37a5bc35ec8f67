package application

import (
	"fmt"
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

// The policies. Delete is the default; Orphan takes our marks off the objects
// and leaves them where they are.
const (
	Delete DeletionPolicy = "delete"
	Orphan DeletionPolicy = "orphan"
)

// Wishes are what the annotations of an Application say.
type Wishes struct {
	Mode           Mode
	DeletionPolicy DeletionPolicy
	Adopt          bool
	// HoldUntil is zero if the Application is not held.
	HoldUntil time.Time
	// DenyHolds: holds on single objects do not count.
	DenyHolds bool
}

// WishesOf reads the annotations. Of a value that cannot be read the default is
// taken, which changes the least on the target: an Application whose mode nobody
// understands is observed, and its objects are orphaned and not adopted.
func WishesOf(cm *corev1.ConfigMap) (Wishes, field.ErrorList) {
	wishes := Wishes{Mode: Enforce, DeletionPolicy: Delete}
	var refusals field.ErrorList
	path := field.NewPath("metadata", "annotations")
	refuse := func(annotation, value, wanted string) {
		refusals = append(refusals, field.Invalid(path.Key(annotation), value, wanted))
	}
	for annotation, value := range cm.Annotations {
		switch annotation {
		case ModeAnnotation:
			if wishes.Mode = Mode(value); wishes.Mode != Enforce && wishes.Mode != Observe && wishes.Mode != Suspend {
				wishes.Mode = Observe
				refuse(annotation, value, fmt.Sprintf("it has to be %s, %s or %s", Enforce, Observe, Suspend))
			}
		case DeletionPolicyAnnotation:
			if wishes.DeletionPolicy = DeletionPolicy(value); wishes.DeletionPolicy != Delete && wishes.DeletionPolicy != Orphan {
				wishes.DeletionPolicy = Orphan
				refuse(annotation, value, fmt.Sprintf("it has to be %s or %s", Delete, Orphan))
			}
		case AdoptAnnotation:
			if wishes.Adopt = value == "true"; !wishes.Adopt && value != "false" {
				refuse(annotation, value, "it has to be true or false")
			}
		case HoldAnnotation:
			if wishes.DenyHolds = value == "deny"; !wishes.DenyHolds {
				refuse(annotation, value, "it has to be deny; to hold, set "+HoldUntilAnnotation)
			}
		case HoldUntilAnnotation:
			until, err := ParseHold(value)
			if err != nil {
				refuse(annotation, value, err.Error())
			}
			wishes.HoldUntil = until
		}
	}
	return wishes, refusals
}

// ParseHold reads the value of [HoldUntilAnnotation].
func ParseHold(value string) (time.Time, error) {
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("it has to be a time as in RFC 3339: %s", "2026-01-02T15:04:05Z")
	}
	return until, nil
}
