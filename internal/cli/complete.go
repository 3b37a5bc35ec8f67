package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// mostCompleted is how many ConfigMaps are asked for in one go. Their data is not.
const mostCompleted = 500

// completeNames completes the names of Applications in the user's namespace, but for
// those that are typed already.
func (e *environment) completeNames(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := e.namesBeginning(command, typed, begun)
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeName does so for a command that takes one name.
func (e *environment) completeName(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(typed) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return e.completeNames(command, typed, begun)
}

func (e *environment) namesBeginning(command *cobra.Command, typed []string, begun string) ([]string, error) {
	config, err := e.hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	_, namespace, err := e.applications()
	if err != nil {
		return nil, err
	}
	var names []string
	options := metav1.ListOptions{Limit: mostCompleted}
	for {
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(command.Context(), options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			found := &list.Items[i]
			if _, ok := found.Annotations[application.FormatAnnotation]; ok && strings.HasPrefix(found.Name, begun) && !slices.Contains(typed, found.Name) {
				names = append(names, found.Name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names, nil
		}
	}
}
