/** The version of this package; a test holds it to its package.json. */
export const VERSION = '0.0.0'
/** Replaced by the build with the variable `ZABRA_COMMIT`; not there in code that is not built. */
declare const ZABRA_COMMIT: string | undefined
/** The commit from which this package was built; `unknown` where the build was not told. */
export const COMMIT = typeof ZABRA_COMMIT === 'string' && ZABRA_COMMIT !== '' ? ZABRA_COMMIT : 'unknown'
/** The release of Apache ZooKeeper whose behaviour this server has. Clients compare it before they use newer requests. */
const COMPATIBLE_WITH = '3.9.5'
/** The day of the release, since the reference shows one. */
const BUILT = '2026-11-21 00:00 UTC'

/**
 * The feature level: the newest formats and packets that this release reads. Raised by a release that adds one, which members use only
 * once the ensemble has finalized that level (quorum-protocol 18.9).
 */
export const FEATURE_LEVEL = 1

/** The version as four-letter words show it; clients read the three numbers at its start. */
export const FULL_VERSION = `${COMPATIBLE_WITH}-zabra-${VERSION}, built on ${BUILT}`
