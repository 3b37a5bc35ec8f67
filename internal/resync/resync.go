// Package resync finds events that a watch has missed: it compares a list from the API server with
// the known objects.
//
//	differences := resync.Compare(listed, known)
//	...                                             // events that are on their way arrive
//	missed := differences.Standing(listed, known)   // by a second list, and the versions known then
//
// A difference may be an event that is still on its way, so it counts only if it remains some
// seconds later. The package knows versions of objects. It does not list, wait or repair: the
// observer replaces an informer that has missed an event, and the agent reads an Application again.
package resync

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version identifies a state of an object. The zero Version means that the object does not exist.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// Versions are the versions of all objects of a kind.
type Versions map[types.NamespacedName]Version

// Add adds the version of an object.
func (v Versions) Add(object runtime.Object) error {
	item, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	v[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = Version{item.GetUID(), item.GetResourceVersion()}
	return nil
}

// Difference is an object whose known version differs from the listed one.
type Difference struct{ Listed, Known Version }

// Differences are the differences of all objects of a kind.
type Differences map[types.NamespacedName]Difference

// Compare returns the objects whose known version differs from the listed one. The known versions
// must have been read before the list. Then a known object that is not listed was deleted.
func Compare(listed, known Versions) Differences {
	found := Differences{}
	for name, now := range listed {
		if known[name] != now {
			found[name] = Difference{Listed: now, Known: known[name]}
		}
	}
	for name, former := range known {
		if _, ok := listed[name]; !ok {
			found[name] = Difference{Known: former}
		}
	}
	return found
}

// Standing returns the differences that remain, according to a second list and the versions that
// are known then.
func (d Differences) Standing(listed, known Versions) Differences {
	standing := maps.Clone(d)
	maps.DeleteFunc(standing, func(name types.NamespacedName, one Difference) bool { return !one.Stands(listed[name], known[name]) })
	return standing
}

// Stands reports whether the known version is still behind the first list. It takes the versions of
// a second list, and the versions that are known then. A change after the first list does not
// count, because its event may still be on its way.
func (d Difference) Stands(listed, known Version) bool {
	switch {
	case d.Listed == Version{}: // deleted
		return listed == Version{} && known.UID == d.Known.UID
	case known == Version{}: // created, unless it was deleted since
		return listed.UID == d.Listed.UID
	}
	return Newer(d.Listed.ResourceVersion, known.ResourceVersion)
}

// ErrRestored reports that an API server has an older version of an object than before, as after a restore
// of its etcd. A watch that was begun before says nothing until the versions are as high again. What is
// known of other objects may never have happened. Only a process without that knowledge can go on.
var ErrRestored = errors.New("the API server has older versions than before, as after a restore of its data: this process ends, to start anew")

// CheckHistory returns [ErrRestored] if an object is listed with an older version than the one that was
// known before the list.
func (d Differences) CheckHistory() error {
	for name, one := range d {
		if one.Listed == (Version{}) || one.Known == (Version{}) {
			continue
		}
		if err := CheckOrder(one.Known.ResourceVersion, one.Listed.ResourceVersion); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// CheckOrder returns [ErrRestored] if an API server answers with an older version than before. It returns
// nil for versions that cannot be ordered, and if there was none before.
func CheckOrder(former, now string) error {
	if order, err := resourceversion.CompareResourceVersion(now, former); err == nil && order < 0 {
		return fmt.Errorf("version %s, and %s before: %w", now, former, ErrRestored)
	}
	return nil
}

// Newer reports whether a resource version comes after another. The versions of a resource increase
// across UIDs, so the newer version belongs to the newer object. Versions that cannot be ordered
// count as newer.
func Newer(version, former string) bool {
	order, err := resourceversion.CompareResourceVersion(version, former)
	return err != nil || order > 0
}
