package habitat

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// format is what a text has to be.
type format struct {
	// wanted says it to the user: "it has to be ...".
	wanted string
	// most is how many characters it may have; any number if it is 0.
	most int
	is   func(text string) bool
}

// check tells what is wrong with a text.
func (r *reading) check(at *field.Path, text string, of format) {
	switch length := utf8.RuneCountInString(text); {
	case of.most > 0 && length > of.most:
		r.add(field.Invalid(at, shorten(text), fmt.Sprintf("it has %d characters, and at most %d are possible", length, of.most)))
	case !of.is(text):
		r.add(field.Invalid(at, shorten(text), "it has to be "+of.wanted))
	}
}

// Limits of lists and texts.
const (
	maxEnv   = 500
	maxBinds = 100
	// maxName is that of a Habitat: its Pods have a label with the name and 11
	// characters more, and values of labels have at most 63.
	maxName  = 52
	maxText  = 253
	maxLabel = 63
	maxImage = 1024
	maxPath  = 4096
	// maxVariable is that of the name of a variable.
	maxVariable = 1024
	maxSize     = 63
)

var (
	servicePattern  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	argumentPattern = regexp.MustCompile(`^[^\s-]\S*$`)
	ringPattern     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?-\d{14}$`)
	bindPattern     = regexp.MustCompile(`^[^\s:-][^\s:]*$`)
	targetPattern   = regexp.MustCompile(`^[^\s:.]+$`)
	quantityPattern = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?$`)
)

func habitatName() format {
	return format{"a name of at most 52 small letters, digits and dashes, that begins and ends with a letter or a digit: " +
		"the Pods have it in a label, and more behind it", maxName, isLabel}
}

func image() format {
	return format{"the image of the container, without white space", maxImage, func(text string) bool {
		return text != "" && !strings.ContainsFunc(text, unicode.IsSpace)
	}}
}

// serviceName is that of paths, and of a command in a shell.
func serviceName() format {
	return format{"the name of the service, of letters, digits, '_', '.' and '-', and neither . nor ..", maxText, func(text string) bool {
		return servicePattern.MatchString(text) && text != "." && text != ".."
	}}
}

func topology() format { return oneOf(Standalone, Leader) }

func updateStrategy() format { return oneOf(RollingUpdate, OnDelete) }

func oneOf(values ...string) format {
	return format{strings.Join(values, " or "), maxText, func(text string) bool { return slices.Contains(values, text) }}
}

// argument is one of the supervisor: with a dash it would be another flag.
func argument() format {
	return format{"a text without white space that does not begin with a dash; leave the field out for the supervisor's default", maxText, argumentPattern.MatchString}
}

func secretName() format {
	return format{"the name of a Secret, of small letters, digits, dashes and dots; leave the field out if there is none", 0, isSubdomain}
}

func ringSecretName() format {
	return format{"the name of the ring, of small letters, digits and dashes, a dash, and its revision of 14 digits, as in my-ring-20240131235959; " +
		"leave the field out if there is none", maxLabel, ringPattern.MatchString}
}

func bindName() format {
	return format{"the name of the bind, without white space and ':', that does not begin with a dash", maxText, bindPattern.MatchString}
}

func bindService() format {
	return format{"the name of a service, without white space, ':' and '.'", maxText, targetPattern.MatchString}
}

func bindGroup() format {
	return format{"the group of the service, without white space, ':' and '.'", maxText, targetPattern.MatchString}
}

func storageClass() format {
	return format{`the name of a StorageClass, or "" for none`, 0, func(text string) bool { return text == "" || isSubdomain(text) }}
}

// mountPath is that of the claim. Where something else is mounted, too, one of both
// would be hidden.
func mountPath(service string) format {
	return format{"an absolute path below /, without ':', '//' and parts that are . or .., where nothing else is mounted", maxPath, func(text string) bool {
		cleaned := strings.TrimSuffix(text, "/")
		taken := []string{peerFolder, keysFolder, configFolder(service), filesFolder(service)}
		return path.IsAbs(cleaned) && path.Clean(cleaned) == cleaned && !strings.Contains(text, ":") && !slices.Contains(taken, cleaned)
	}}
}

func size() format {
	return format{"a quantity of bytes of more than 0, and at most 4Ei, as 10Gi", maxSize, func(text string) bool {
		_, ok := canonical(text)
		return ok
	}}
}

// canonical gives a quantity as the API server writes it, or false if it is none, or
// is not more than 0. Otherwise text and stored value would differ for ever.
func canonical(text string) (string, bool) {
	quantity, ok := quantityOf(text)
	if !ok || quantity.Sign() <= 0 {
		return "", false
	}
	return quantity.String(), true
}

// quantityOf reads a quantity. What has more digits than 64 bits hold is none: the
// library cuts it (1000E would be written as 1).
func quantityOf(text string) (resource.Quantity, bool) {
	if len(text) > maxSize || !quantityPattern.MatchString(text) {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, false
	}
	quantity.Add(resource.Quantity{}) // or it would be written as it was read
	most := resource.NewQuantity(1<<62, resource.BinarySI)
	least := resource.NewQuantity(-1<<62, resource.BinarySI)
	return quantity, quantity.Cmp(*most) <= 0 && quantity.Cmp(*least) >= 0
}

func isLabel(text string) bool     { return len(validation.IsDNS1123Label(text)) == 0 }
func isSubdomain(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }
