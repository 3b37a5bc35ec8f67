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

// Newer reports whether a resource version comes after another. The versions of a resource increase
// across UIDs, so the newer version belongs to the newer object. Versions that cannot be ordered
// count as newer.
func Newer(version, former string) bool {
	order, err := resourceversion.CompareResourceVersion(version, former)
	return err != nil || order > 0
}
