package application

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A clone is equal, and a change to it does not change the original.
func TestClone(t *testing.T) {
	app := complete()
	clone := app.Clone()
	if !reflect.DeepEqual(clone.Status, app.Status) || !reflect.DeepEqual(without(clone), without(app)) {
		t.Errorf("the clone is\n%+v, want\n%+v", clone, app)
	}
	shares(t, reflect.ValueOf(clone).Elem(), reflect.ValueOf(app).Elem(), "Application")
	if none := (&Application{}).Clone(); !reflect.DeepEqual(none, &Application{}) {
		t.Errorf("an empty one is cloned to %+v", none)
	}
}

// complete returns an Application in which every field is set, each text to its own path.
func complete() *Application {
	app := &Application{}
	fill(reflect.ValueOf(app).Elem(), "Application")
	app.LastApplied, app.LastObserved = Publishing(app.Learned), Publishing(app.Learned)
	return app
}

// fill sets a value and all that is in it, with one element in each list and map. It panics on a kind that it does not know.
func fill(v reflect.Value, path string) {
	if foreign := foreignValues()[v.Type()]; foreign != nil {
		v.Set(reflect.ValueOf(foreign))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, path)
		fill(value, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"ports": []any{int64(80), 1.5, path, true, nil}}))
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

// foreignValues returns values of types whose fields are not set one by one.
func foreignValues() map[reflect.Type]any {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return map[reflect.Type]any{
		reflect.TypeFor[time.Time](): now, reflect.TypeFor[metav1.Time](): metav1.NewTime(now),
		reflect.TypeFor[error](): errors.New("damaged"), reflect.TypeFor[Published](): Published{},
	}
}

// without omits the fields that hold functions, which are never equal.
func without(app *Application) Application {
	left := *app
	left.LastApplied, left.LastObserved = Published{}, Published{}
	return left
}

// shares fails if two values share something mutable.
func shares(t *testing.T, a, b reflect.Value, path string) {
	t.Helper()
	if foreignValues()[a.Type()] != nil || path == "Application.Mangled" {
		return
	}
	if slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, a.Kind()) && a.Pointer() == b.Pointer() {
		t.Errorf("%s is shared", path)
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			shares(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)
		}
	case reflect.Interface:
		if !a.IsNil() {
			shares(t, a.Elem(), b.Elem(), path)
		}
	case reflect.Pointer:
		shares(t, a.Elem(), b.Elem(), path)
	case reflect.Slice:
		for i := range a.Len() {
			shares(t, a.Index(i), b.Index(i), path+"[]")
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			shares(t, a.MapIndex(key), b.MapIndex(key), path+"[]")
		}
	}
}
