/** Znodes that real clients alone write, and follow through streams of events. */
export const STREAM_PATHS: readonly string[] = ['/w/live/0', '/w/live/1', '/w/live/2']

/** What is there for real clients before they begin. */
export const PARTICIPANT_PATHS: readonly string[] = ['/w/live', ...STREAM_PATHS]

/** Whether the watches of a path are judged by what goes over the wire: not so where some last and some are taken back. */
export const isChecked = (path: string): boolean => !path.startsWith('/w/live')
