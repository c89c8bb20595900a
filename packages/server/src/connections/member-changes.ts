import {
  ErrorCode,
  OpCode,
  Reader,
  Writer,
  writeReconfigRequest,
  type ReconfigRequest,
} from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { Identity, SessionId } from '../core/types.ts'
import type { AcceptedWrite, ClientOrigin, RequestPipeline, WriteCallback } from '../pipeline/index.ts'

/** What has become of a change of the members. */
export type MemberChangeResult =
  /** It is committed: the text of the new configuration. */
  | { readonly configuration: string }
  /** It is refused with this error number. */
  | { readonly err: number }
  /** Why it was not begun. */
  | { readonly unavailable: string }
  /** Why it is not known whether it is committed, now or later. */
  | { readonly unknown: string }

/** Who asks for a change, for the audit log. */
export interface MemberChangeCaller {
  readonly identities: readonly Identity[]
  readonly origin: ClientOrigin
}

/** What a change needs of the service of a role. */
interface ChangingService {
  readonly isAccepting: boolean
  readonly isReadOnly: boolean
  readonly pipeline: Pick<RequestPipeline, 'isWritable' | 'createSession' | 'write' | 'closeSession'>
  readonly platform: { readonly clock: Pick<Clock, 'after'> }
  newSessionId(): SessionId
  runTurn(action: () => void): void
}

/** An operator of this server is the superuser of its ensemble. */
const OPERATOR: Identity = { scheme: 'super', id: '' }

/**
 * Changes the members of the ensemble for operators of this server. Each change is one reconfiguration in a session of its own, which no
 * client has and which is closed behind it: so it passes through the pipeline of any role, to leaders of Apache ZooKeeper too, and does
 * not outlive a lost leader for long.
 */
export class MemberChanges {
  readonly #service: ChangingService
  readonly #timeoutMs: number
  /** Ends the changes without an outcome. */
  readonly #pending = new Set<(reason: string) => void>()
  #onDone: () => void = () => {}

  /** `timeoutMs`: the longest time for a change. */
  constructor(service: ChangingService, timeoutMs: number) {
    this.#service = service
    this.#timeoutMs = timeoutMs
  }

  /** Changes the members. Resolves when it is committed or refused, and at the latest after the timeout or when the role ends. */
  change(request: ReconfigRequest, caller: MemberChangeCaller): Promise<MemberChangeResult> {
    const { isAccepting, isReadOnly, pipeline, platform } = this.#service
    if (!isAccepting) return Promise.resolve({ unavailable: 'the server is stopping' })
    if (isReadOnly) return Promise.resolve({ unavailable: 'the server is read-only, without a quorum' })
    if (!pipeline.isWritable) return Promise.resolve({ unavailable: 'the disk of the server is full' })
    return new Promise((resolve) => {
      const settle = (result: MemberChangeResult): void => {
        if (!this.#pending.delete(end)) return
        cancel()
        resolve(result)
        if (this.#pending.size === 0) this.#onDone()
      }
      const end = (reason: string): void => settle({ unknown: reason })
      const cancel = platform.clock.after(this.#timeoutMs, 'change of the members', () =>
        end(`no quorum has committed it within ${this.#timeoutMs} ms`),
      )
      this.#pending.add(end)
      this.#service.runTurn(() => this.#submit(request, caller, settle))
    })
  }

  /** Calls back once no change waits for its outcome. */
  whenDone(action: () => void): void {
    this.#onDone = action
    if (this.#pending.size === 0) action()
  }

  /** Ends all changes: their outcome is not known. */
  end(reason: string): void {
    for (const end of this.#pending) end(reason)
  }

  #submit(
    request: ReconfigRequest,
    { identities, origin }: MemberChangeCaller,
    settle: (result: MemberChangeResult) => void,
  ): void {
    const { pipeline } = this.#service
    const sessionId = this.#service.newSessionId()
    if (!pipeline.createSession(sessionId, this.#timeoutMs, IGNORED))
      return settle({ unavailable: 'the server accepts no writes now' })
    const writer = new Writer(256)
    writeReconfigRequest(writer, request)
    const write = { sessionId, xid: 1, type: OpCode.reconfig, identities: [OPERATOR, ...identities] }
    const callback = { ...IGNORED, origin, ...outcomeOf(settle) }
    const err = pipeline.write(write, new Reader(writer.take()), callback)
    if (err !== ErrorCode.OK) settle({ err })
    pipeline.closeSession(sessionId, 2, undefined)
  }
}

const IGNORED: WriteCallback = { onPart() {}, onApplied() {}, onLost() {}, onSynced() {} }

const outcomeOf = (
  settle: (result: MemberChangeResult) => void,
): Pick<WriteCallback, 'onApplied' | 'onLost'> => ({
  onApplied({ logged: { txn } }: AcceptedWrite, err: number) {
    if (txn.type === OpCode.reconfig && err === ErrorCode.OK)
      settle({ configuration: new TextDecoder().decode(txn.data ?? undefined) })
    else settle({ err: txn.type === OpCode.error ? txn.err : err })
  },
  onLost: () => settle({ err: ErrorCode.SYSTEMERROR }),
})
