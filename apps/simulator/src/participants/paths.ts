/** Znodes that only library clients write, and follow with persistent watches. */
export const STREAM_PATHS: readonly string[] = ['/w/live/0', '/w/live/1', '/w/live/2']

/** Nodes created before library clients start. */
export const PARTICIPANT_PATHS: readonly string[] = ['/w/live', ...STREAM_PATHS]

/**
 * Returns whether watches of a path are checked on the wire. Not where persistent watches, or watches that are removed,
 * exist as well.
 */
export const isChecked = (path: string): boolean => !path.startsWith('/w/live')
