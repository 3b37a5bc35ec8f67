package habitat

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of lists and texts.
const (
	maxEnv   = 500
	maxBinds = 100
	// maxName is that of a Habitat: its Pods have a label with the name and 11 more
	// characters, and a label value has at most 63.
	maxName     = 52
	maxText     = 253
	maxLabel    = 63
	maxImage    = 1024
	maxPath     = 4096
	maxVariable = 1024 // the name of a variable
	maxSize     = 63
)

var (
	servicePattern  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	targetPattern   = regexp.MustCompile(`^[^\s:.]+$`)
	quantityPattern = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?$`)
)

// The formats of texts.
var (
	anyText  = format{"a text", 0, func(string) bool { return true }}
	nameText = format{"a name of at most 52 small letters, digits and dashes, that begins and ends with a letter or a digit: " +
		"the Pods have it in a label, and more behind it", maxName, func(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }}
	imageText = format{"the image of the container, without white space", maxImage, func(text string) bool {
		return text != "" && !strings.ContainsFunc(text, unicode.IsSpace)
	}}
	// serviceText is a part of paths, and of a shell command.
	serviceText = format{"the name of the service, of letters, digits, '_', '.' and '-', and neither . nor ..", maxText, func(text string) bool {
		return servicePattern.MatchString(text) && text != "." && text != ".."
	}}
	topologyText = oneOf(Standalone, Leader)
	strategyText = oneOf(RollingUpdate, OnDelete)
	// argumentText is an argument of the supervisor: with a dash it would be another flag.
	argumentText = format{"a text without white space that does not begin with a dash; leave the field out for the supervisor's default",
		maxText, regexp.MustCompile(`^[^\s-]\S*$`).MatchString}
	secretText = format{"the name of a Secret, of small letters, digits, dashes and dots; leave the field out if there is none", 0, isSubdomain}
	ringText   = format{"the name of the ring, of small letters, digits and dashes, a dash, and its revision of 14 digits, as in my-ring-20240131235959; " +
		"leave the field out if there is none", maxLabel, regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?-\d{14}$`).MatchString}
	bindText = format{"the name of the bind, without white space and ':', that does not begin with a dash",
		maxText, regexp.MustCompile(`^[^\s:-][^\s:]*$`).MatchString}
	bindServiceText = format{"the name of a service, without white space, ':' and '.'", maxText, targetPattern.MatchString}
	bindGroupText   = format{"the group of the service, without white space, ':' and '.'", maxText, targetPattern.MatchString}
	classText       = format{`the name of a StorageClass, or "" for none`, 0, func(text string) bool { return text == "" || isSubdomain(text) }}
	sizeText        = format{"a quantity of bytes of more than 0, and at most 4Ei, as 10Gi", maxSize, func(text string) bool {
		_, ok := canonical(text)
		return ok
	}}
	// variableText accepts the names that the API server accepts.
	variableText = format{"the name of the variable, of printable ASCII characters without '='", maxVariable, func(text string) bool {
		return len(validation.IsRelaxedEnvVarName(text)) == 0
	}}
)

func oneOf(values ...string) format {
	return format{strings.Join(values, " or "), maxText, func(text string) bool { return slices.Contains(values, text) }}
}

// mountPathText is a path for the claim. A path with another mount would hide one of both.
func mountPathText(service string) format {
	return format{"an absolute path below /, without ':', '//' and parts that are . or .., where nothing else is mounted", maxPath, func(text string) bool {
		cleaned := strings.TrimSuffix(text, "/")
		taken := []string{peerFolder, keysFolder, configFolder(service), filesFolder(service)}
		return path.IsAbs(cleaned) && path.Clean(cleaned) == cleaned && !strings.Contains(text, ":") && !slices.Contains(taken, cleaned)
	}}
}

// canonical returns a quantity in the canonical form of the API server, or false unless
// it is more than 0. In another form, text and stored value would always differ.
func canonical(text string) (string, bool) {
	quantity, ok := quantityOf(text)
	if !ok || quantity.Sign() <= 0 {
		return "", false
	}
	return quantity.String(), true
}

// quantityOf parses a quantity that 64 bits hold: the library truncates a larger one, and
// writes 1000E as 1.
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

func isSubdomain(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }
