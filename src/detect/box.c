/* Computes the intersection over union of boxes, with the operations of pycocotools' bbIou in their
 * order, on which the last bit depends. */
#include "detect.h"

double box_iou(const double box[4], const double truth[4], bool crowd)
{
    double right = box[0] + box[2], truth_right = truth[0] + truth[2];
    double bottom = box[1] + box[3], truth_bottom = truth[1] + truth[3];
    double width =
        (right < truth_right ? right : truth_right) - (box[0] > truth[0] ? box[0] : truth[0]);
    double height =
        (bottom < truth_bottom ? bottom : truth_bottom) - (box[1] > truth[1] ? box[1] : truth[1]);
    if (width <= 0 || height <= 0) return 0;
    double both = width * height, area = box[2] * box[3];
    return both / (crowd ? area : area + truth[2] * truth[3] - both);
}
