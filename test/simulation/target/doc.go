// Package target is a cluster in memory, as small as what an agent asks of one:
// two hundred of them are in one process.
//
//	cluster := target.New()
//	cluster.AddNamespace("web")
//	agent.RunWith(ctx, options, agent.Configs{Hub: hub, Target: cluster.Config()})
//	cluster.Change("configmaps", "web", "page", func(page map[string]any) { ... }) // a drift
//
// It serves ConfigMaps, Services, ServiceAccounts, Namespaces, Leases, Events and
// CustomResourceDefinitions, and to what agents ask it answers as an API server
// does; the package's test asks both and compares. That is discovery, reads and
// lists of whole objects and of metadata, watches with their first objects and
// without, creation, JSON patches that are guarded by a resourceVersion, updates,
// and deletion with preconditions.
//
// What it does not do, for no agent asks: it validates nothing and knows no
// subresource and no finalizer, it authorises nobody, nothing runs in it, its lists
// have one page, and it understands protobuf but answers in JSON. Of managedFields
// it keeps none, so that nobody can be blamed for a drift.
package target
