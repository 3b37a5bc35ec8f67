package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// window has the measurements of the hub in a time, and the requests to the clusters
// meanwhile.
type window struct {
	reading

	long    time.Duration
	targets counts
}

// asked returns the requests to the hub, without those of a hub without agents.
func (w window) asked(alone window) counts {
	return w.requests.less(alone.requests.times(w.long.Seconds() / alone.long.Seconds())).ofAgents()
}

// perSecond returns the counts per second.
func (w window) perSecond(all counts) string { return all.times(1 / w.long.Seconds()).String() }

// share returns the part of one core that a process used.
func (w window) share(process string) float64 {
	return 100 * w.processes[process].CPU.Seconds() / w.long.Seconds()
}

// results has all measurements.
type results struct {
	Options

	alone, started, created, idle, drift, again window

	// enrolled, admitted, running and acting are durations: until all clusters were
	// enrolled, all Applications created, all of them running, and all restarted agents
	// acting.
	enrolled, admitted, running, acting time.Duration
	// busiest is the number of Leases that are renewed in the same second.
	busiest int
	// repairs are the durations of the repairs, sorted.
	repairs []time.Duration
	// bare is the memory of the clusters and their agents without Applications, and
	// full the memory with all of them. empty is the memory without agents.
	bare, full, empty int64

	writes, lists []cost
}

// write writes the tables.
func (r results) write(out io.Writer) {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range r.rows() {
		fmt.Fprintf(columns, "%s\t%s\n", row[0], row[1])
	}
	fmt.Fprintf(columns, "\nfor the hub\tlayout\twatches\tCPU of the API server\tof etcd\thalf take at most\t99 of 100\n")
	for _, c := range r.writes {
		fmt.Fprintf(columns, "a write\t%s\n", c)
	}
	for _, c := range r.lists {
		fmt.Fprintf(columns, "a list of the versions\t%s\n", c)
	}
	_ = columns.Flush() // text for the terminal
}

// String returns the columns of a cost.
func (c cost) String() string {
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s", c.layout, c.watchers, milliseconds(c.cpu), milliseconds(c.etcd), milliseconds(c.took), milliseconds(c.slow))
}

func milliseconds(took time.Duration) string { return fmt.Sprintf("%.1f ms", 1000*took.Seconds()) }
func seconds(took time.Duration) string      { return fmt.Sprintf("%.1f s", took.Seconds()) }
func mebibytes(bytes int64) string           { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func (r results) rows() [][2]string {
	rows := [][2]string{
		{"what", "measured"},
		{"clusters, Applications", fmt.Sprintf("%d, %d", r.Clusters, r.Applications)},
	}
	rows = append(rows, r.setUp()...)
	rows = append(rows, r.atRest()...)
	rows = append(rows, r.underDrift()...)
	return append(rows, r.afterwards()...)
}

func (r results) setUp() [][2]string {
	each := r.created.requests.times(1 / float64(r.Applications))
	return [][2]string{
		{"set-up: all clusters are enrolled", seconds(r.enrolled)},
		{"set-up: all agents act", seconds(r.started.long)},
		{"set-up: all Applications are admitted", seconds(r.admitted)},
		{"set-up: all run", seconds(r.running)},
		{"set-up: requests for an Application", fmt.Sprintf("%s patches, %s Events", decimals(each["patch configmaps"]), decimals(each.sum("create events", "patch events")))},
		{"set-up: processors", processors(r.created)},
	}
}

func (r results) atRest() [][2]string {
	return [][2]string{
		{fmt.Sprintf("at rest for %s: requests in a second", r.Idle), r.idle.perSecond(r.idle.asked(r.alone))},
		{"at rest: Leases renewed in the busiest second", fmt.Sprint(r.busiest)},
		{"at rest: the hub left alone has", r.alone.perSecond(r.alone.requests)},
		{"at rest: processors", processors(r.idle)},
		{"at rest: watches on ConfigMaps", decimals(r.idle.watchers["configmaps"])},
		{"at rest: events sent in a second", r.idle.perSecond(r.idle.events.ofAgents())},
		{"at rest: requests of an agent to its cluster in a minute", r.idle.targets.times(60 / r.idle.long.Seconds() / float64(r.Clusters)).String()},
	}
}

func (r results) underDrift() [][2]string {
	writes := r.drift.requests["patch configmaps"]
	return [][2]string{
		{"drift: objects changed", fmt.Sprintf("%d, %s in a second", len(r.repairs), decimals(float64(len(r.repairs))/r.Drift.Seconds()))},
		{"drift: repaired after", fmt.Sprintf("half: %s, 99 of 100: %s, all: %s", milliseconds(quantile(r.repairs, 0.5)), milliseconds(quantile(r.repairs, 0.99)), milliseconds(quantile(r.repairs, 1)))},
		{"drift: requests in a second", r.drift.perSecond(r.drift.asked(r.alone))},
		{"drift: writes to Applications for a drift", decimals(writes / float64(len(r.repairs)))},
		{"drift: events sent for a write to an Application", decimals(r.sent() / max(1, writes))},
		{"drift: processors", processors(r.drift)},
	}
}

// sent returns the number of ConfigMap events under drift, without the bookmarks of
// idle watches.
func (r results) sent() float64 {
	return r.drift.events["configmaps"] - r.idle.events["configmaps"]*r.drift.long.Seconds()/r.idle.long.Seconds()
}

func (r results) afterwards() [][2]string {
	return [][2]string{
		{"all agents start again: until all act", seconds(r.acting)},
		{"all agents start again: requests", r.again.asked(r.alone).String()},
		{"all agents start again: processors", processors(r.again)},
		{"all agents start again: writes but of Leases", decimals(writesOf(r.again))},
		{"memory of the hub: left alone", memories(r.alone)},
		{"memory of the hub: agents without Applications", memories(r.started)},
		{"memory of the hub: at rest", memories(r.idle)},
		{"memory of the hub: under drift", memories(r.drift)},
		{"memory of the hub: after all have started again", memories(r.again)},
		{"memory of all agents without Applications", mebibytes(r.bare)},
		{"memory of all agents", mebibytes(r.full - r.empty)},
		{"memory of an agent", mebibytes((r.full - r.empty) / int64(r.Clusters))},
	}
}

func processors(w window) string {
	return fmt.Sprintf("API server %s %%, etcd %s %%, webhook %s %% of one", decimals(w.share(apiServer)), decimals(w.share(etcd)), decimals(w.share(webhook)))
}

func memories(w window) string {
	return fmt.Sprintf("API server %s, etcd %s, webhook %s",
		mebibytes(w.processes[apiServer].Resident), mebibytes(w.processes[etcd].Resident), mebibytes(w.processes[webhook].Resident))
}

// writesOf counts the agents' writes, except to their Leases.
func writesOf(w window) float64 {
	return w.requests.sum("patch configmaps", "create events", "patch events", "create configmaps", "delete configmaps")
}

// broken returns an error for violated requirements.
func (r results) broken() error {
	var failures []error
	if writes := writesOf(r.idle); writes > 0 {
		failures = append(failures, fmt.Errorf("agents at rest make %.0f writes: %s", writes, r.idle.requests))
	}
	if writes := writesOf(r.again); writes > 0 {
		failures = append(failures, fmt.Errorf("agents that start again make %.0f writes: %s", writes, r.again.requests))
	}
	if asked := r.idle.targets.sum("patch configmaps", "patch services", "create configmaps", "create services", "get configmaps", "get services", "delete"); asked > 0 {
		failures = append(failures, fmt.Errorf("agents at rest ask their clusters %.0f times: %s", asked, r.idle.targets))
	}
	return errors.Join(failures...)
}
