package purgatorio.kit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * As much JSON as the protocol and the trace format need: objects whose values are texts, integers, or lists of either.
 * Anything else is refused, so that a change on the other side does not go unseen.
 */
@SuppressWarnings("cast") // janino does not infer them
public final class Json {
    private static final int MAX_ITEMS = 100000;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Name to Long, String or List. Throws IllegalArgumentException, which says where. */
    public static Map<String, Object> read(String text) {
        Json reader = new Json(text);
        Map<String, Object> fields = new HashMap<String, Object>();
        reader.expect('{');
        if (reader.peek() == '}') {
            reader.at++;
            return reader.atTheEnd(fields);
        }
        while (true) {
            reader.peek();
            String name = reader.string();
            reader.expect(':');
            fields.put(name, reader.peek() == '[' ? (Object) reader.list() : reader.plain());
            if (reader.peek() == '}') {
                reader.at++;
                return reader.atTheEnd(fields);
            }
            reader.expect(',');
        }
    }

    private Map<String, Object> atTheEnd(Map<String, Object> fields) {
        if (!text.substring(at).trim().isEmpty()) {
            throw wrong("something behind the object");
        }
        return fields;
    }

    private List<Object> list() {
        List<Object> items = new ArrayList<Object>();
        expect('[');
        if (peek() == ']') {
            at++;
            return items;
        }
        while (items.size() < MAX_ITEMS) {
            peek();
            items.add(plain());
            if (peek() == ']') {
                at++;
                return items;
            }
            expect(',');
        }
        throw wrong("a list of more than " + MAX_ITEMS);
    }

    private Object plain() {
        return text.charAt(at) == '"' ? (Object) string() : (Object) Long.valueOf(integer());
    }

    private IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException("column " + (at + 1) + ": " + what);
    }

    private char peek() {
        while (at < text.length() && text.charAt(at) == ' ') {
            at++;
        }
        if (at >= text.length()) {
            throw wrong("the line ends too early");
        }
        return text.charAt(at);
    }

    private void expect(char wanted) {
        if (peek() != wanted) {
            throw wrong("not '" + wanted + "'");
        }
        at++;
    }

    private String string() {
        expect('"');
        StringBuilder value = new StringBuilder();
        while (at < text.length()) {
            char one = text.charAt(at++);
            if (one == '"') {
                return value.toString();
            }
            value.append(one == '\\' ? escaped() : one);
        }
        throw wrong("a text without an end");
    }

    private char escaped() {
        if (at >= text.length()) {
            throw wrong("the line ends too early");
        }
        char kind = text.charAt(at++);
        int plain = "\"\\/bfnrt".indexOf(kind);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (kind != 'u' || at + 4 > text.length()) {
            throw wrong("no escape of JSON");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private long integer() {
        int start = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (start == at) {
            throw wrong("neither text nor integer");
        }
        return Long.parseLong(text.substring(start, at));
    }

    /** Append a text with its quotes. */
    static void text(StringBuilder line, String value) {
        line.append('"');
        for (int index = 0; index < value.length(); index++) {
            char one = value.charAt(index);
            if (one == '"' || one == '\\') {
                line.append('\\').append(one);
            } else if (one < ' ' || Character.isSurrogate(one)) {
                // Half a pair would be no UTF-8; escaped, a whole pair reads the same.
                String hex = Integer.toHexString(one);
                line.append("\\u").append("0000", 0, 4 - hex.length()).append(hex);
            } else {
                line.append(one);
            }
        }
        line.append('"');
    }

    static void texts(StringBuilder line, List<String> values) {
        line.append('[');
        for (int index = 0; index < values.size(); index++) {
            if (index > 0) {
                line.append(',');
            }
            text(line, (String) values.get(index));
        }
        line.append(']');
    }
}
