package main

import (
	"fmt"
	"go/constant"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// limit is a constant of a package that users meet.
type limit struct {
	folder, name string
	isBytes      bool
	meaning      string
}

// group is the limits of one subject.
type group struct {
	title  string
	limits []limit
}

// groups returns all limits by subject.
func groups() []group { return append(ofApplications(), ofPrograms()...) }

func ofApplications() []group {
	return []group{
		{"Of an Application", []limit{
			{"pkg/manifest", "MaxBytes", true, "manifest and observer schema, or the template, together"},
			{"pkg/manifest", "MaxResources", false, "resources"},
			{"pkg/manifest", "MaxDepth", false, "objects and lists within each other"},
			{"pkg/mutate", "maxLength", false, "the longest list that an observer schema can require"},
			{"pkg/mutate", "maxDataBytes", true, "the whole `data`, as the API server has it"},
			{"pkg/mutate", "maxAnnotationBytes", true, "all annotations together, as the API server has it: plain `kubectl apply` adds one with all the rest"},
			{"pkg/mutate", "maxRefusals", false, "mistakes that one refusal names"},
			{"internal/webhook", "maxWarnings", false, "warnings of one admission"},
			{"internal/webhook", "maxWarning", false, "characters of a warning"},
			{"pkg/schema", "maxKeys", false, "fields by which the elements of a list are found"},
			{"pkg/application", "leastGraceTime", false, "the shortest shutdown grace time"},
			{"pkg/application", "mostGraceTime", false, "the longest shutdown grace time"},
			{"pkg/application", "mostRetries", false, "attempts of a shutdown after the first one"},
		}},
		{"Of its status", []limit{
			{"pkg/application", "gzipAbove", true, "a larger document is stored compressed, in `binaryData`"},
			{"pkg/application", "MaxDrifts", false, "drifts in the history"},
			{"pkg/status", "maxFields", false, "fields of a drift that the status names"},
			{"pkg/status", "maxValue", true, "a longer value is replaced by its digest"},
			{"pkg/apierror", "maxText", true, "the message of a condition"},
			{"pkg/apierror", "maxExplanation", true, "the API server's explanation of a refused field in a condition; longer ones are left out"},
			{"pkg/health", "maxPorts", false, "ports in the address of a Service"},
		}},
		{"Of repairs", []limit{
			{"pkg/pacing", "fastRepairs", false, "repairs of one field against one rival that are made at once"},
			{"pkg/pacing", "manyRepairs", false, "the same against all rivals together"},
			{"pkg/pacing", "firstPause", false, "the first pause after that; each further one is twice as long"},
			{"pkg/pacing", "longestPause", false, "the longest pause"},
			{"pkg/pacing", "peace", false, "a fight is forgotten after this time without a change of the object"},
			{"internal/agent", "parallelWrites", false, "objects that an agent writes at once for each Application of `--concurrency`, on average"},
			{"pkg/reconcile", "slowRetry", false, "how often the agent checks for a change that it waits for"},
			{"pkg/reconcile", "silence", false, "how long a cluster may not answer before conditions say so"},
			{"pkg/pacing", "leastInterval", false, "the least time between two writes of a status"},
			{"pkg/pacing", "mostInterval", false, "the same under constant drift, and before the first write of texts and counts after another state or reason"},
			{"pkg/pacing", "textInterval", false, "the same before further writes of texts and counts"},
			{"pkg/pacing", "pacedPerSecond", false, "writes of statuses per second that change neither state nor reason, for all Applications of an agent"},
			{"pkg/pacing", "pacedAtOnce", false, "the same at once, after a time without"},
			{"pkg/pacing", "longestTurnWait", false, "how long one waits for its turn"},
			{"pkg/observer", "longestGather", false, "how long the first list of a kind waits for further requests for objects of that kind"},
			{"pkg/observer", "longestCrowd", false, "how long it waits, after the start of an agent, until all Applications had a pass"},
			{"pkg/reconcile", "leastFetchPause", false, "the first pause after a URL could not be fetched"},
			{"pkg/reconcile", "mostFetchPause", false, "the longest one"},
			{"pkg/reconcile", "leastPatience", false, "how soon the agent checks again for an object that is being deleted"},
			{"pkg/reconcile", "mostPatience", false, "how late at the latest"},
			{"pkg/reconcile", "mostCallPause", false, "the longest pause between calls within an attempt to shut down"},
			{"internal/cli", "mostHold", false, "the longest hold of an object that `kubectl krake hold` requests without a warning; the agent's limit is `--max-hold`"},
		}},
	}
}

func ofPrograms() []group {
	return []group{
		{"Of webhook and agent", []limit{
			{"internal/webhook", "askingTimeout", false, "how long an admission asks the API server: for rights, and with dry runs"},
			{"internal/webhook", "dryRunsAtOnce", false, "dry runs of all admissions at once"},
			{"internal/webhook", "ownRightsFor", false, "how long the webhook remembers which kinds it may try"},
			{"internal/webhook", "maxOwnRights", false, "kinds that it remembers for that"},
			{"internal/webhook", "allowedFor", false, "how long a granted right is cached"},
			{"internal/webhook", "reviewsAtOnce", false, "rights that one admission checks at once"},
			{"internal/agent/telemetry", "maxKindLabels", false, "kinds in the metrics; further ones are `other`"},
			{"internal/agent/telemetry", "eventsOfOneAtOnce", false, "drifts of one Application that have Events, after a time without"},
			{"internal/agent/telemetry", "eventsOfOne", false, "further ones in a second"},
			{"internal/agent/telemetry", "eventsOfAllAtOnce", false, "the same for all Applications of an agent"},
			{"internal/agent/telemetry", "eventsOfAll", false, "further ones in a second"},
			{"internal/agent/telemetry", "longestEventWait", false, "how long an Event waits for its turn; later ones are left out"},
			{"internal/agent/guard", "maxTexts", false, "fields that one answer of the guard names"},
			{"internal/agent/guard", "maxText", false, "characters about each of them"},
			{"internal/agent/guard", "maxDecoded", false, "bytes of an object before and after a request, together, that the guard judges"},
			{"internal/agent/guard", "maxReview", false, "bytes of a review that the guard reads"},
			{"pkg/forecast", "maxValue", true, "a value in it; a longer value is left out"},
			{"internal/agent", "leastResync", false, "the shortest `--resync-period`"},
			{"pkg/application", "MostShards", false, "the most `--shards`"},
			{"internal/right", "leastHeartbeat", false, "the shortest `--heartbeat-interval`"},
			{"internal/enrol", "leastDuration", false, "the shortest `--token-duration`"},
		}},
		{"Of templates, archives and URLs", []limit{
			{"pkg/tosca", "maxImports", false, "files that a template imports"},
			{"pkg/tosca", "maxImportDepth", false, "imports within each other"},
			{"pkg/tosca", "maxArchiveBytes", true, "the files of an archive, unpacked"},
			{"pkg/tosca", "maxEntries", false, "files of an archive"},
			{"pkg/application", "maxURL", false, "characters of a URL"},
			{"internal/fetch", "defaultMaxBytes", true, "what is fetched from one URL"},
			{"internal/fetch", "maxRedirects", false, "redirects of one file"},
			{"internal/fetch", "maxRequests", false, "requests for one Application"},
		}},
		{"Of hooks", []limit{
			{"internal/hooks", "maxBody", true, "the body of a call"},
		}},
		{"Of an expression of jq on one object", []limit{
			{"internal/ignored", "maxTime", false, "how long `kubectl krake import --from` evaluates it"},
			{"internal/ignored", "maxFields", false, "fields that it selects"},
		}},
		{"Of Habitats", []limit{
			{"pkg/habitat", "maxName", false, "characters of the name"},
			{"pkg/habitat", "maxEnv", false, "environment variables"},
			{"pkg/habitat", "maxBinds", false, "binds"},
			{"internal/habitat", "mostOwners", false, "Habitats of a namespace that own its peer file; it goes with the last one all the same"},
		}},
	}
}

// inner are constants that look like limits but never concern users: they bound single
// texts, caches and loops.
func inner() []string {
	return []string{
		"internal/agent/guard.maxPlan", "internal/agent/guard.maxPlans", "internal/agent/target.maxAccounts", "internal/agent/hub.maxParsed", "internal/agent/hub.maxParsedBytes", "internal/cli.mostCompleted", "internal/cli.mostTrials", "internal/lens.mostLines", "internal/ui.leastSpan", "internal/ui.mostBytes", "internal/ui.mostIndex", "internal/ui.mostRepairs", "internal/ui.mostToggles", "internal/enrol.mostShown", "internal/fetch.maxHeaderBytes",
		"internal/habitat.mostFields", "internal/hooks.maxAnswerHeader", "internal/hooks.maxConnections", "internal/hooks.maxConnectionsOfOne",
		"internal/hooks.maxHeader", "internal/hooks.maxSources", "internal/hooks.maxUnused", "internal/webhook.maxAllowed", "internal/webhook/limit.maxBody", "internal/discovery.maxKinds",
		"pkg/habitat.maxImage", "pkg/habitat.maxLabel", "pkg/habitat.maxPath", "pkg/habitat.maxShown", "pkg/habitat.maxSize",
		"pkg/habitat.maxText", "pkg/habitat.maxVariable", "pkg/health.MaxMessage", "pkg/mutate.MaxSpecBytes", "pkg/mutate.maxStep",
		"pkg/reconcile.leastCallPause", "pkg/reconcile.maxTries",
		"pkg/schema.maxFindings", "pkg/schema.maxOperations", "pkg/schema.maxPaths", "pkg/schema.maxPlace", "pkg/schema.maxStep", "pkg/schema.mostPooled",
		"pkg/tosca.maxHeaders", "pkg/tosca.maxMistakes", "pkg/tosca.maxName", "pkg/tosca.maxReferences", "pkg/tosca.maxSteps",
	}
}

// looksLikeLimit matches the names of constants that bound something.
var looksLikeLimit = regexp.MustCompile(`^(max|Max|most|Most|least|Least)[A-Z]`)

func limits(p *page, root string) error {
	s := newSource(root)
	p.section("Limits", "")
	for _, group := range groups() {
		p.text("\n### " + group.title + "\n")
		var rows [][]string
		for _, one := range group.limits {
			constants, err := s.constants(one.folder)
			if err != nil {
				return err
			}
			of, ok := constants[one.name]
			if !ok {
				return fmt.Errorf("limits: %s has no constant %s any more: take it out of the table of test/reference", one.folder, one.name)
			}
			rows = append(rows, []string{one.meaning, valueOf(of, one.isBytes)})
		}
		p.table([]string{"what", "limit"}, rows)
	}
	return checkLimits(s)
}

// checkLimits returns an error if a constant looks like a limit, and is in none of the
// tables.
func checkLimits(s *source) error {
	there, known := map[string]bool{}, map[string]bool{}
	for _, group := range groups() {
		for _, one := range group.limits {
			known[one.folder+"."+one.name] = true
		}
	}
	for _, name := range inner() {
		known[name] = true
	}
	folders, err := productFolders(s.root)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		constants, err := s.constants(folder)
		if err != nil {
			return err
		}
		for name, of := range constants {
			isNumber := of.Val().Kind() != constant.String
			if full := folder + "." + name; isNumber && looksLikeLimit.MatchString(name) || known[full] {
				there[full] = true
			}
		}
	}
	return sameKeys("limits", there, known)
}

// productFolders returns the folders below pkg and internal that have Go files.
func productFolders(root string) ([]string, error) {
	found := map[string]bool{}
	for _, top := range []string{"pkg", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && filepath.Ext(name) == ".go" {
				relative, err := filepath.Rel(root, filepath.Dir(name))
				found[filepath.ToSlash(relative)] = true
				return err
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	delete(found, path.Join("internal", "layers")) // not part of the product
	return slices.Sorted(maps.Keys(found)), nil
}
