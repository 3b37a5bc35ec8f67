// Package kit is the harness that the test suites share: a control plane with its clients, namespaces, kubectl,
// Applications, waiting, the audit log, and TestMain.
//
//	var plane *kit.Plane
//
//	func TestMain(m *testing.M) {
//		kit.Suite{
//			Name:  "colours",
//			Start: func(ctx context.Context) (err error) { plane, err = kit.StartPlane(ctx, cluster.Options{}); return err },
//			Stop:  func() error { return plane.Stop() },
//		}.Main(m)
//	}
//
//	func TestChangedColourIsReverted(t *testing.T) {
//		namespace := plane.NewNamespace(t, "colours")
//		app := plane.CreateApp(t, kit.Application(namespace, "paint", colours))
//		app.MustBe(t, application.StateRunning)
//		plane.Change(t, kit.ConfigMaps, namespace, "paint", `{"data": {"colour": "red"}}`)
//		plane.EventuallyField(t, "green", kit.ConfigMaps, namespace, "paint", "data", "colour")
//	}
//
// The package does not know what a suite tests: it asserts only what the status of an Application reports. Every
// function that takes a [testing.TB] fails that test and returns no error; its counterpart with a context returns the
// error.
package kit
