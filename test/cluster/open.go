package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// The tiers are kinds of clusters, in the order in which [Open] prefers them.
const (
	tierExisting = "existing"
	tierKind     = "kind"
	tierLocal    = "local"
)

// provider makes the clusters of a tier.
type provider struct {
	tier        string
	limits      string                                            // what its clusters cannot show
	unavailable func(ctx context.Context, options Options) string // returns why it cannot be used, or the empty string
	open        func(ctx context.Context, options Options) (*Cluster, error)
}

// providers returns the order of preference: a cluster that was named, then one like a
// user's cluster, and last one that always works.
func providers() []provider {
	return []provider{
		{
			tier:        tierExisting,
			limits:      "what it can show depends on it",
			unavailable: func(context.Context, Options) string { return unset("KRAKE_E2E_KUBECONFIG") },
			open: func(ctx context.Context, _ Options) (*Cluster, error) {
				return Existing(ctx, os.Getenv("KRAKE_E2E_KUBECONFIG"))
			},
		},
		{
			tier:        tierKind,
			limits:      "Pods run; its audit log cannot be read",
			unavailable: whyNotKind,
			open:        startKind,
		},
		{
			tier:        tierLocal,
			limits:      "processes of this machine; it has no kubelet: no Pod runs, no Service leads anywhere",
			unavailable: func(context.Context, Options) string { return "" },
			open:        Start,
		},
	}
}

func unset(variable string) string {
	if os.Getenv(variable) == "" {
		return variable + " is not set"
	}
	return ""
}

// Open returns the best available cluster, or one of the tier that E2E_TIER names. The
// first line of its log has the cluster and its limits, and the next ones why no better
// one is used. If the chosen cluster does not start, Open fails, and does not try
// another. Options apply to a local cluster.
func Open(ctx context.Context, options Options) (*Cluster, error) {
	chosen, reasons, err := choose(ctx, options, providers(), os.Getenv("E2E_TIER"))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(options.log(), "cluster: %s: %s\n", chosen.tier, chosen.limits)
	for _, reason := range reasons {
		fmt.Fprintf(options.log(), "cluster: %s\n", reason)
	}
	return chosen.open(ctx, options)
}

// choose returns the first usable provider, or the one of the tier if that is not
// empty. It also returns why it skipped the earlier ones.
func choose(ctx context.Context, options Options, all []provider, tier string) (provider, []string, error) {
	var reasons, tiers []string
	for _, p := range all {
		tiers = append(tiers, p.tier)
		reason := "E2E_TIER is " + tier
		if tier == "" || tier == p.tier {
			reason = p.unavailable(ctx, options)
		}
		switch {
		case tier == p.tier && reason != "":
			return provider{}, nil, fmt.Errorf("open cluster of E2E_TIER=%s: %s", tier, reason)
		case reason == "":
			return p, reasons, nil
		}
		reasons = append(reasons, "not "+p.tier+": "+reason)
	}
	if tier != "" {
		return provider{}, nil, fmt.Errorf("open cluster of E2E_TIER=%s: it is none of %s", tier, strings.Join(tiers, ", "))
	}
	return provider{}, nil, fmt.Errorf("open cluster: %s", strings.Join(reasons, "; "))
}
