// Package workload makes realistic manifests of any size: small services, each with a
// ServiceAccount, a ConfigMap, a Deployment, a Service and a PodDisruptionBudget.
package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	// usual is the size of a service, if there is room for several.
	usual = 5 << 10
	// maxServices limits a manifest to 100 objects, the maximum of an Application:
	// larger manifests have larger services.
	maxServices = 20
)

// Manifest returns a manifest of that many bytes, the same for the same seed. It has
// several services; a size of less than one is rounded up.
func Manifest(size int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, uint64(size))) //nolint:gosec // the same numbers each time are what is wanted
	services := min(maxServices, max(1, size/usual))
	var text strings.Builder
	for n := range services {
		left := size - text.Len()
		text.WriteString(service(fmt.Sprintf("service-%d", n+1), left/(services-n), random))
	}
	return text.String()
}

// service returns the objects of one service: as many settings as fit. Each setting is
// a variable of the container and a line of its file. A comment fills the rest.
func service(name string, size int, random *rand.Rand) string {
	var settings []setting
	text := render(name, settings)
	for {
		more := append(settings, newSetting(len(settings), random))
		longer := render(name, more)
		if len(longer) > size {
			break
		}
		settings, text = more, longer
	}
	if missing := size - len(text); missing > len("#\n") {
		text += "#" + strings.Repeat("-", missing-len("#\n")) + "\n"
	}
	return text
}

type setting struct{ key, value string }

func newSetting(n int, random *rand.Rand) setting {
	subjects := []string{"cache", "database", "queue", "storage", "sessions", "search", "mail", "audit"}
	properties := []string{"url", "timeout", "retries", "pool-size", "region", "token-file", "level", "prefix"}
	subject, property := subjects[random.IntN(len(subjects))], properties[random.IntN(len(properties))]
	return setting{
		key:   fmt.Sprintf("%s-%s-%d", subject, property, n),
		value: fmt.Sprintf("%s.%x.example.com:%d", subject, random.Uint32(), 1024+random.IntN(60000)),
	}
}

func render(name string, settings []setting) string {
	var lines, variables strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&lines, "    %s = %s\n", s.key, s.value)
		variable := strings.ToUpper(strings.ReplaceAll(s.key, "-", "_"))
		fmt.Fprintf(&variables, "        - name: %s\n          value: %s\n", variable, s.value)
	}
	return strings.NewReplacer("NAME", name, "LINES\n", lines.String(), "VARIABLES\n", variables.String()).Replace(template)
}

const template = `---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: NAME
automountServiceAccountToken: false
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
data:
  log.level: info
  settings.conf: |
    # read at the start
LINES
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: NAME
  template:
    metadata:
      labels:
        app.kubernetes.io/name: NAME
    spec:
      serviceAccountName: NAME
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
      - name: main
        image: registry.example.com/NAME:1.4.2
        args: [--config=/etc/NAME/settings.conf, --verbose=false]
        ports:
        - name: http
          containerPort: 8080
        - name: metrics
          containerPort: 9090
        env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: LOG_LEVEL
          valueFrom:
            configMapKeyRef:
              name: NAME
              key: log.level
VARIABLES
        resources:
          requests:
            cpu: 100m
            memory: 128Mi
          limits:
            memory: 256Mi
        readinessProbe:
          httpGet:
            path: /ready
            port: http
          periodSeconds: 5
        livenessProbe:
          httpGet:
            path: /live
            port: http
          initialDelaySeconds: 10
          failureThreshold: 5
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
        volumeMounts:
        - name: config
          mountPath: /etc/NAME
          readOnly: true
      - name: proxy
        image: registry.example.com/proxy:2.0.1
        ports:
        - name: https
          containerPort: 8443
        resources:
          limits:
            cpu: 50m
            memory: 64Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop: [ALL]
      volumes:
      - name: config
        configMap:
          name: NAME
---
apiVersion: v1
kind: Service
metadata:
  name: NAME
  labels:
    app.kubernetes.io/name: NAME
spec:
  selector:
    app.kubernetes.io/name: NAME
  ports:
  - name: https
    port: 443
    targetPort: https
  - name: metrics
    port: 9090
    targetPort: metrics
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: NAME
spec:
  minAvailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: NAME
`
