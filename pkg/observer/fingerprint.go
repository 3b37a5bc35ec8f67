package observer

import (
	"hash/maphash"

	"github.com/krake-observer/krake-observer/pkg/watchjson"
)

// fingerprint digests the texts of the observed fields of an object. An equal fingerprint of the
// same object for the same target means that nothing observed has changed. 0: there is none.
type fingerprint uint64

// fingerprintSeed is a secret of this process, so that no user can make two texts of one fingerprint.
var fingerprintSeed = maphash.MakeSeed()

// digest computes a fingerprint.
type digest struct{ hash maphash.Hash }

func newDigest() *digest {
	d := &digest{}
	d.hash.SetSeed(fingerprintSeed)
	return d
}

// add adds a field. The zero bytes separate name and text: neither a name nor JSON has one.
func (d *digest) add(field watchjson.Field) {
	_, _ = d.hash.WriteString(field.Name) // a maphash returns no errors
	_ = d.hash.WriteByte(0)
	_, _ = d.hash.Write(field.Text)
	_ = d.hash.WriteByte(0)
}

func (d *digest) fingerprint() fingerprint { return max(1, fingerprint(d.hash.Sum64())) }
