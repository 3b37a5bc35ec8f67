package agent

import (
	"errors"

	"github.com/spf13/pflag"

	front "github.com/krake-observer/krake-observer/pkg/habitat"
)

// Habitat are the options of the process that makes Applications of Habitats.
type Habitat struct {
	// Enabled: this process carries out Habitats, and no Applications.
	Enabled bool
	// AssumeRegistered leaves the CustomResourceDefinition to another installer.
	AssumeRegistered bool
	// FilesImage is the image of the init container that copies files.
	FilesImage string
}

func (h *Habitat) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&h.Enabled, "habitat", false,
		"make Applications of Habitats, for the agent of this cluster to carry out, and keep their peer files; this process is then no agent itself")
	flags.BoolVar(&h.AssumeRegistered, "assume-crd-registered", false, "with --habitat: do not register the CustomResourceDefinition of Habitats; somebody else does")
	flags.StringVar(&h.FilesImage, "habitat-files-image", front.DefaultFilesImage, "with --habitat: image with sh and cp, of the init container that copies the files of filesSecretName")
}

func (h *Habitat) validate() error {
	switch {
	case !h.Enabled && h.AssumeRegistered:
		return errors.New("--assume-crd-registered: has a meaning with --habitat only")
	case h.Enabled && h.FilesImage == "":
		return errors.New("--habitat-files-image: must not be empty")
	}
	return nil
}
