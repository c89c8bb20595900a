/** Limits beyond which the findings of a server, `zabra doctor` and `zabra cluster` warn alike. */

/** Days before the end of a certificate. */
export const MIN_CERTIFICATE_DAYS = 30
/** Percent of a disk that are used. */
export const MAX_DISK_USED = 85
/** Intervals of a schedule after which a backup is late. */
export const LATE_INTERVALS = 2
