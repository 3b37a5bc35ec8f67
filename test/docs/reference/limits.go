package main

import (
	"fmt"
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
			{"pkg/application", "MaxPlainBytes", true, "manifest and observer schema, or the template, together, unless the manifest is compressed"},
			{"pkg/manifest", "MaxBytes", true, "the text of a compressed manifest"},
			{"pkg/manifest", "MaxResources", false, "resources"},
			{"pkg/manifest", "MaxValues", false, "texts, numbers, objects and lists in a manifest, with the additions of hooks, and in an observer schema"},
			{"pkg/manifest", "MaxDepth", false, "objects and lists within each other"},
			{"pkg/mutate", "maxLength", false, "the longest list that an observer schema can require"},
			{"pkg/mutate", "maxDataBytes", true, "the whole `data`, as the API server has it"},
			{"pkg/mutate", "maxAnnotationBytes", true, "all annotations together, as the API server has it: plain `kubectl apply` adds one with all the rest"},
			{"pkg/mutate", "maxRefusals", false, "mistakes that one refusal names"},
			{"internal/webhook", "maxWarnings", false, "warnings of one admission"},
			{"internal/webhook", "maxWarning", false, "characters of a warning"},
			{"pkg/application", "leastGraceTime", false, "the shortest shutdown grace time"},
			{"pkg/application", "mostGraceTime", false, "the longest shutdown grace time"},
			{"pkg/application", "mostRetries", false, "attempts of a shutdown after the first one"},
		}},
		{"Of its status", []limit{
			{"pkg/application", "compressAbove", true, "a larger document is stored compressed by zstd, in `binaryData`"},
			{"pkg/application", "compressStatusAbove", true, "so is a larger `status`"},
			{"pkg/application", "MaxDrifts", false, "drifts in the history"},
			{"internal/status", "maxValue", true, "a longer value is replaced by its digest"},
			{"internal/apierror", "maxText", true, "the message of a condition"},
			{"internal/health", "maxPorts", false, "ports in the address of a Service"},
		}},
		{"Of repairs", []limit{
			{"internal/pacing", "fastRepairs", false, "repairs of one field against one competing writer that are made at once"},
			{"internal/pacing", "manyRepairs", false, "the same against all competing writers together"},
			{"internal/pacing", "firstPause", false, "the first pause after that; each further one is twice as long"},
			{"internal/pacing", "longestPause", false, "the longest pause"},
			{"internal/pacing", "peace", false, "contention is forgotten after this time without a change of the object"},
			{"pkg/reconcile", "silence", false, "how long a cluster may not answer before conditions say so"},
			{"internal/pacing", "leastInterval", false, "the least time between two writes of a status"},
			{"internal/pacing", "mostInterval", false, "the same under constant drift, and before the first write of texts and counts after another state or reason"},
			{"internal/cli/apps", "MostHold", false, "the longest hold of an object that `kubectl krake hold` requests without a warning; the agent's limit is `--max-hold`"},
		}},
	}
}

func ofPrograms() []group {
	return []group{
		{"Of webhook and agent", []limit{
			{"internal/webhook/limit", "AnswerTime", false, "how long an admission may take: the wait for its turn, what it computes, and what it asks the API server, for rights and with dry runs"},
			{"internal/webhook", "allowedFor", false, "how long a granted right is cached"},
			{"internal/agent", "leastResync", false, "the shortest `--resync-period`"},
			{"pkg/application", "MostShards", false, "the most `--shards`"},
			{"internal/right", "leastHeartbeat", false, "the shortest `--heartbeat-interval`"},
			{"internal/enrol", "leastDuration", false, "the shortest `--token-duration`"},
		}},
		{"Of templates, archives and URLs", []limit{
			{"pkg/tosca", "maxImports", false, "files that a template imports"},
			{"pkg/tosca", "maxArchiveBytes", true, "the files of an archive, unpacked"},
			{"pkg/application", "maxURL", false, "characters of a URL"},
			{"internal/fetch", "defaultMaxBytes", true, "what is fetched from one URL"},
			{"internal/fetch", "maxRedirects", false, "redirects of one file"},
			{"internal/fetch", "maxRequests", false, "requests for one Application"},
		}},
		{"Of hooks", []limit{
			{"internal/hooks", "maxBody", true, "the body of a call"},
		}},
		{"Of Habitats", []limit{
			{"pkg/habitat", "maxName", false, "characters of the name"},
			{"pkg/habitat", "maxEnv", false, "environment variables"},
			{"pkg/habitat", "maxBinds", false, "binds"},
		}},
	}
}

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
				return fmt.Errorf("limits: %s has no constant %s any more: take it out of the table of test/docs/reference", one.folder, one.name)
			}
			rows = append(rows, []string{one.meaning, valueOf(of, one.isBytes)})
		}
		p.table([]string{"what", "limit"}, rows)
	}
	return nil
}
