import { Histogram } from '../histogram.ts'
import { Statistics } from '../statistics.ts'

/** Holds the statistics of notifications, over all roles of a server. */
export class WatchStats extends Statistics {
  /** Notifications delivered, and their bytes. */
  delivered = 0
  bytes = 0
  /** Milliseconds from an event until it is written to the socket of its connection; without those that leave with a reply. */
  readonly latency = new Histogram()
  /** Watchers per event, by type of event. */
  readonly created = new Histogram()
  readonly deleted = new Histogram()
  readonly changed = new Histogram()
  readonly children = new Histogram()
}
