/** The cases that the gateway answers for: requests (M, R), streams (MS, RS), chat (C), errors (E). Each has at least one fixture under `tests/golden/gateway`. */
const groups = [
  'M1 M3 M4 M5 M7 M8 M9 M11 M12 M13 M15 M16 M17 M19 M20 M21 M23 M24 M25 M27 M28 M29',
  'MS2 MS3 MS4 MS6 MS7 MS8 MS10 MS11 MS12 MS14 MS15 MS16 MS18 MS19 MS20 MS22 MS23 MS24 MS26 MS27 MS28',
  'R1 R2 R3 R5 R6 R7 R9 R10 R11 R13 R14 R15 R17 R18 R19 R21 R22 R23',
  'RS1 RS2 RS3 RS5 RS6 RS7 RS9 RS10 RS11 RS13 RS14 RS15 RS17 RS18 RS19 RS20 RS21 RS22',
  'C2 C3 C4 C6 C7 C8 C10 C11 C12 C14',
  'E1 E2 E4 E5 E6',
];

export const caseIds: readonly string[] = groups.flatMap((group) => group.split(' '));
