package hub

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// maxReadings is how many Applications are kept after they were read, and maxReading
	// how many bytes the ConfigMap of each may have.
	maxReadings = 64
	maxReading  = 64 << 10
)

// readings reads Applications, and keeps the latest: where one object drifts, others of its
// Application often do, and each repair waits for the reading.
type readings struct {
	cluster string
	lately  *lru.Cache
}

func newReadings(cluster string) readings {
	return readings{cluster: cluster, lately: lru.New(maxReadings)}
}

// of returns the Application of a ConfigMap. The caller may change it.
func (r readings) of(cm *corev1.ConfigMap) (*application.Application, error) {
	version := foldedAs(cm)
	if found, ok := r.lately.Get(version); ok {
		return found.(*application.Application).Clone(), nil
	}
	app, err := application.ReadFor(cm, r.cluster)
	if err != nil {
		return nil, err
	}
	if version.uid != "" && version.version != "" && cm.Size() <= maxReading {
		r.lately.Add(version, app.Clone())
	}
	return app, nil
}
