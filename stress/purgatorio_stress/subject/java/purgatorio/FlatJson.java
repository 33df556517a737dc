package purgatorio;

import java.util.HashMap;
import java.util.Map;

/**
 * Reads one flat JSON object whose values are integers or strings without escapes: all that the plan needs.
 * Anything else is refused, so a change of the plan on one side only does not go unseen.
 */
final class FlatJson {
    private final String text;
    private int at;

    private FlatJson(String text) {
        this.text = text;
    }

    /** Name to Long or String. Throws IllegalArgumentException. */
    static Map read(String text) {
        FlatJson reader = new FlatJson(text);
        Map fields = new HashMap();
        reader.expect('{');
        if (reader.peek() == '}') {
            return fields;
        }
        while (true) {
            String name = reader.string();
            reader.expect(':');
            Object value = reader.peek() == '"' ? (Object) reader.string() : (Object) Long.valueOf(reader.integer());
            fields.put(name, value);
            if (reader.peek() == '}') {
                return fields;
            }
            reader.expect(',');
        }
    }

    private char peek() {
        while (at < text.length() && text.charAt(at) == ' ') {
            at++;
        }
        if (at == text.length()) {
            throw new IllegalArgumentException("the line ends too early");
        }
        return text.charAt(at);
    }

    private void expect(char wanted) {
        if (peek() != wanted) {
            throw new IllegalArgumentException("column " + at + ": not '" + wanted + "'");
        }
        at++;
    }

    private String string() {
        expect('"');
        int end = text.indexOf('"', at);
        if (end < 0 || text.substring(at, end).indexOf('\\') >= 0) {
            throw new IllegalArgumentException("column " + at + ": not a plain string");
        }
        String value = text.substring(at, end);
        at = end + 1;
        return value;
    }

    private long integer() {
        peek();
        int start = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return Long.parseLong(text.substring(start, at));
    }
}
