import { OperationTimeoutError, utf8, type Bytes } from '@zabra/client/core'

/** Most holders that an error names; a lock may have thousands of readers. */
export const MAX_HOLDERS = 4
/** Most characters of a holder's data in a message. */
const MAX_DATA_LENGTH = 60

/** A contender of a lock. */
export interface Participant {
  readonly path: string
  readonly data: Bytes
  /** Id of the session. */
  readonly owner: bigint
}

/** What a call was waiting for when its time was up. */
export interface Explanation {
  readonly text: string
  /** For a lock: its holders. */
  readonly holders?: readonly Participant[] | undefined
}

/** The lock was not acquired in time. */
export class LockTimeoutError extends OperationTimeoutError {
  static override readonly tag = 'LockTimeoutError'
  /** The first contenders that hold the lock, at most four, read after the time was up; empty when they could not be read. */
  readonly holders: readonly Participant[]

  constructor(
    message: string,
    holders: readonly Participant[],
    context: ConstructorParameters<typeof OperationTimeoutError>[2],
    wireCode?: number,
  ) {
    super(message, 'OPERATION_TIMEOUT', context, wireCode)
    this.holders = holders
  }
}

/** Returns a message about the holders of a lock. Without `count` these are all. */
export function explainHolders(all: readonly Participant[], count = all.length): Explanation {
  const holders = all.slice(0, MAX_HOLDERS)
  if (holders.length === 0) return { text: 'no client holds it now', holders }
  const names = holders.map(({ owner, data }) => `session 0x${owner.toString(16)}${describeData(data)}`)
  const more = count > holders.length ? ` and ${count - holders.length} more` : ''
  return { text: `held by ${names.join(', ')}${more}`, holders }
}

function describeData(data: Bytes): string {
  if (data.length === 0) return ''
  const text = utf8.decode(data.subarray(0, MAX_DATA_LENGTH))
  return ` (${JSON.stringify(data.length > MAX_DATA_LENGTH ? `${text}…` : text)})`
}
