package observer

import (
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fingerprint digests the texts of all fields of an object that anybody observes. Whoever
// sees an equal one again, of the same object and for the same target, sees the same as
// before. 0: none was made.
type fingerprint uint64

// fingerprintSeed is a secret of this process: nobody makes two texts of one fingerprint.
var fingerprintSeed = maphash.MakeSeed()

// fingerprint is of the fields as they are written, and without looking into them, but for
// metadata, of which something changes each time.
func (d *decoder) fingerprint(seen sight, parts []part) fingerprint {
	var hash maphash.Hash
	hash.SetSeed(fingerprintSeed)
	for _, field := range parts {
		if !seen.observes(field.name) {
			continue
		}
		if field.name != "metadata" {
			add(&hash, field)
			continue
		}
		metadata, err := read(d.words, field.text, (*parser).parts)
		if err != nil {
			return 0
		}
		for _, field := range metadata {
			if seen.observes("metadata", field.name) {
				add(&hash, field)
			}
		}
	}
	return max(1, fingerprint(hash.Sum64()))
}

// add has the hash tell where a name ends: no name has a zero byte, and no text of JSON.
func add(hash *maphash.Hash, field part) {
	_, _ = hash.WriteString(field.name) // a hash takes all
	_ = hash.WriteByte(0)
	_, _ = hash.Write(field.text)
	_ = hash.WriteByte(0)
}

// unchanged gives what the watcher sees, if that is what it saw last, and all was as it
// should be.
func (w watcher) unchanged(seen fingerprint, live *unstructured.Unstructured, now time.Time) (Observation, bool) {
	if seen == 0 || seen != w.last.fingerprint || w.last.Differs() || w.last.UID != live.GetUID() {
		return Observation{}, false
	}
	same := w.last
	same.ResourceVersion, same.Seen = live.GetResourceVersion(), now
	return same, true
}
