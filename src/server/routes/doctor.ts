import { operations } from '../../wire/api/operations.ts';
import { diagnosisDocumentOf } from '../documents.ts';
import { Refusal } from '../refusal.ts';
import { addRoute, parameter, type Routing } from '../route.ts';

/** Each look may take seconds, and all are made at the same time. */
const maxLooks = 200;

export function addDoctorRoutes(routing: Routing): void {
  const { doctor, service } = routing.parts;
  addRoute(routing, operations.doctor, async ({ caller }) => {
    const [begun, queued, ended] = await Promise.all([
      service.list({ states: ['running', 'grading'], limit: maxLooks }, caller),
      service.list({ states: ['queued'], limit: maxLooks }, caller),
      service.list({ states: ['success', 'failure'], limit: maxLooks }, caller),
    ]);
    // What has ended and is still known to be under way has callbacks to deliver.
    const delivering = ended.filter(({ progress }) => progress !== null);
    // Those that wait for a place come last: they are many, and wait for the others.
    const live = [...begun, ...delivering, ...queued].slice(0, maxLooks);
    const [ofServer, ofRollouts] = await Promise.all([
      doctor.diagnoseServer(),
      Promise.all(live.map(({ rollout }) => doctor.diagnose(rollout.id, caller))),
    ]);
    const still = ofRollouts
      .filter((finding) => finding !== null)
      .filter(({ kind }) => kind !== 'moving' && kind !== 'ended');
    return { findings: [...ofServer, ...still].map(diagnosisDocumentOf) };
  });
  addRoute(routing, operations.doctorOfRollout, async (call) => {
    const finding = await doctor.diagnose(parameter(call, 'id'), call.caller);
    if (finding === null) throw new Refusal(404, 'Not Found');
    return { findings: [diagnosisDocumentOf(finding)] };
  });
}
