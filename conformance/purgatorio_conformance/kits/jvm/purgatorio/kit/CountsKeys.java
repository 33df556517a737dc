package purgatorio.kit;

/** A purgatory that counts the keys that have a list, for P4. An interface of its own: janino knows no default method. */
public interface CountsKeys<O> extends PurgatoryUnderTest<O> {
    /** Keys that have a list; null if that is not known. */
    Long keys() throws Exception;
}
