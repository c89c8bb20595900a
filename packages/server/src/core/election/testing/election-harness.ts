import { parseConfiguration, type EnsembleConfiguration, type ServerId } from '../../quorum/index.ts'
import {
  Election,
  electionDefaults,
  type ElectionInput,
  type ElectionOptions,
  type ElectionWork,
  type ElectionState,
  type Notification,
  type Vote,
} from '../index.ts'

/** The configuration of these voters; others may follow as text. */
export function ensemble(voters: readonly ServerId[], more = ''): EnsembleConfiguration {
  return parseConfiguration([...voters.map((id) => `server.${id}=h${id}:2888:3888`), more].join('\n'))
}

/** One election and what became of each input, in a form that a test can compare. */
export class ElectionHarness {
  readonly election: Election
  work: readonly ElectionWork[] = []

  constructor(self: ServerId, settings: Partial<ElectionOptions> = {}) {
    this.election = new Election({ self, ...electionDefaults, ...settings })
  }

  step(input: ElectionInput): this {
    this.work = this.election.step(input)
    return this
  }

  look(footing: Partial<ElectionState> = {}): this {
    return this.step({
      type: 'look',
      footing: { zxid: 0, epoch: 0, active: ensemble([1, 2, 3]), ...footing },
    })
  }

  receive(from: ServerId, notification: Partial<Notification> & { vote: Vote }): this {
    return this.step({ type: 'heard', from, notification: { state: 'looking', version: 2, ...notification } })
  }

  reach(to: ServerId, reachable: boolean): this {
    return this.step({ type: 'reach', to, reachable })
  }

  timeout(timer: 'resend' | 'settle'): this {
    return this.step({ type: 'timeout', timer })
  }

  /** What is sent, as `to: state leader@round zxid epoch`. */
  get sent(): string[] {
    return this.work.flatMap((work) => {
      if (work.do !== 'send') return []
      const { leader, round, zxid, epoch } = work.vote
      return [`${work.to}: ${work.state} ${leader}@${round} ${zxid.toString(16)} ${epoch}`]
    })
  }

  /** What else is to be done, by name. */
  get otherWork(): string[] {
    return this.work.flatMap((work) => {
      if (work.do === 'start') return [`${work.timer} in ${work.afterMs}`]
      if (work.do === 'decide') return [`${work.state} ${work.vote.leader}`]
      return work.do === 'configure' || work.do === 'warn' ? [work.do] : []
    })
  }
}

/** A vote for a leader in a round, with its zxid and epoch. */
export const vote = (leader: ServerId, round = 1, zxid = 0, epoch = 0): Vote => ({
  leader,
  round,
  zxid,
  epoch,
})
