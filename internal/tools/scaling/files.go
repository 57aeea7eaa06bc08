package scaling

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// JSON writes the records as an array.
func JSON(records []Record) ([]byte, error) {
	b, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("records as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// CSV writes the records with the names of the JSON fields as header. A list is one cell with "; " between its
// elements. A number that was not measured is an empty cell.
func CSV(records []Record) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var header []string
	for i := range reflect.TypeFor[Record]().NumField() {
		header = append(header, reflect.TypeFor[Record]().Field(i).Tag.Get("json"))
	}
	_ = w.Write(header) // a buffer does not fail
	for _, r := range records {
		var line []string
		for i := range header {
			line = append(line, cell(reflect.ValueOf(r).Field(i)))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// cell returns the text of a field of a Record.
func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return cell(v.Elem())
	case reflect.Slice:
		all := make([]string, v.Len())
		for i := range all {
			all[i] = cell(v.Index(i))
		}
		return strings.Join(all, "; ")
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
}
